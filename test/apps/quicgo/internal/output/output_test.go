// SPDX-License-Identifier: GPL-2.0-or-later

package output

import (
	"encoding/json"
	"testing"
)

func text(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPercentilesAreNearestRanks(t *testing.T) {
	var values []float64
	for value := 200; value > 0; value-- {
		values = append(values, float64(value))
	}
	want := `{"p50":100,"p90":180,"p99":198,"max":200,"mean":100.5}`
	if got := text(t, Summarise(values)); got != want {
		t.Error(got)
	}
	if values[0] != 200 {
		t.Error("the values were moved")
	}
}

func TestNothingIsNull(t *testing.T) {
	want := `{"p50":null,"p90":null,"p99":null,"max":null,"mean":null}`
	if got := text(t, Summarise(nil)); got != want {
		t.Error(got)
	}
}
