# SPDX-License-Identifier: GPL-2.0-or-later
"""What somebody types at the router's prompt, and what it answers, for people to read."""

from __future__ import annotations

from testbed.world.process import ExperimentError

from .router import Router


class Terminal:
    """Runs commands on the router and writes them down, as Markdown."""

    def __init__(self, router: Router, title: str) -> None:
        self._router = router
        self._text = [f"# {title}"]
        self._open = False

    def say(self, sentence: str) -> None:
        """Something for who reads it."""
        if self._open:
            self._text.append("```")
        self._open = False
        self._text += ["", sentence]

    def type(self, command: str, *, refused: bool | None = False, timeout_s: float = 60) -> str:
        """A command that succeeds, or has to fail, or may do either; what it said."""
        answer = self._router.attempt(command, timeout_s)
        if not self._open:
            self._text += ["", "```"]
        self._open = True
        self._text += [f"root@router:~# {command}", *answer.output.splitlines()]
        if refused is not None and (answer.code != 0) != refused:
            raise ExperimentError(f"`{command}` gave {answer.code}\n{answer.output}")
        return answer.output

    def text(self) -> str:
        """All of it so far."""
        return "\n".join([*self._text, *(["```"] if self._open else [])]) + "\n"
