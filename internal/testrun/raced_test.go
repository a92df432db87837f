package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// countingProgram counts its runs in a file. The first $1 runs print $2 and fail.
const countingProgram = `#!/bin/sh
echo run >> "$0.runs"
if [ "$(wc -l < "$0.runs")" -le "$1" ]; then echo "$2"; exit 66; fi
echo ok
`

func TestOnlyAFailureOfTheDetectorItselfRunsAgain(t *testing.T) {
	const detector, race = `ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 "((exiting))" (0x0)`, "WARNING: DATA RACE"
	for name, c := range map[string]struct {
		fails, says string
		exit, runs  int
	}{
		"it passes":                          {"0", "", 0, 1},
		"the detector fails twice":           {"2", detector, 0, 3},
		"the detector fails each time":       {"9", detector, 66, 3},
		"a race is a failure":                {"9", race, 66, 1},
		"a race before it is one":            {"9", race + "\n" + detector, 66, 1},
		"a failed test before it is one":     {"9", "--- FAIL: TestX (0.00s)\n" + detector, 66, 1},
		"a failed subtest before it is one":  {"9", "    --- FAIL: TestX/y (0.00s)\n" + detector, 66, 1},
		"a test that prints of the detector": {"9", "x_test.go:7: " + detector, 66, 1},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(program, []byte(countingProgram), 0o755); err != nil {
				t.Fatal(err)
			}
			run := exec.Command("../../scripts/raced", program, c.fails, c.says)
			said, _ := run.CombinedOutput()
			runs, err := os.ReadFile(program + ".runs")
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(runs), "run"); n != c.runs || run.ProcessState.ExitCode() != c.exit {
				t.Errorf("%d runs, exit %d, want %d and %d: %s", n, run.ProcessState.ExitCode(), c.runs, c.exit, said)
			}
		})
	}
}
