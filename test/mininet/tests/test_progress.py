# SPDX-License-Identifier: GPL-2.0-or-later
import io

from testbed.draw.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_in_a_log():
    stream = io.StringIO()
    progress = Progress([1, 3], stream)
    for name in ("first", "second"):
        progress.begin(name)
        progress.tick()
        progress.end("9.00 Mbit/s")
    text = stream.getvalue()
    assert "\r" not in text
    assert "[1/2] first: 9.00 Mbit/s" in text
    assert "about 0:00 left" in text.splitlines()[1]
    assert text.splitlines()[-1].startswith("[2/2] second")
    assert "left" not in text.splitlines()[-1]


def test_one_line_in_place_on_a_terminal():
    stream = Terminal()
    progress = Progress([1], stream)
    progress.begin("only")
    progress.tick()
    assert stream.getvalue().count("\n") == 0
    progress.end("done")
    assert stream.getvalue().count("\n") == 1
