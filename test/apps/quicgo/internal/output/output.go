// SPDX-License-Identifier: GPL-2.0-or-later

// Package output prints results as the Rust programs do.
package output

import (
	"encoding/json"
	"math"
	"os"
	"slices"
)

// JSON prints one JSON object as a line, and writes it to a file if there is one.
func JSON(value any, file string) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := os.Stdout.Write(text); err != nil {
		return err
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, text, 0o644)
}

// Rounded is the value to six digits, microseconds: what finer ones say is noise.
func Rounded(value float64) float64 {
	return math.Round(value*1e6) / 1e6
}

// Summary has the mean and percentiles by the nearest rank; null where there was
// nothing.
type Summary struct {
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P99  *float64 `json:"p99"`
	Max  *float64 `json:"max"`
	Mean *float64 `json:"mean"`
}

// Summarise takes the values in any order.
func Summarise(values []float64) Summary {
	count := len(values)
	if count == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := func(percent int) *float64 {
		return &sorted[max((count*percent+99)/100, 1)-1]
	}
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	mean := Rounded(sum / float64(count))
	return Summary{P50: rank(50), P90: rank(90), P99: rank(99), Max: rank(100), Mean: &mean}
}
