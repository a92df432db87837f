package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/rogpeppe/go-internal/testscript"
)

// The script command "screen WIDTH LINES FILE" writes the terminal's content after the last command to FILE.
// The content must not be wider than WIDTH or have more lines than LINES.
func screen(ts *testscript.TestScript, _ bool, args []string) {
	width, err := strconv.Atoi(args[0])
	ts.Check(err)
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := visibleLines(ts.ReadFile("ttyout"))
	for _, line := range lines {
		if columns := runewidth.StringWidth(line); columns > width {
			ts.Fatalf("%d columns, more than %d: %s", columns, width, line)
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(lines) > most {
		ts.Fatalf("%d lines, more than %d:\n%s", len(lines), most, text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o644))
}

// The script command "same FILE DOCUMENT PATTERN" checks that DOCUMENT contains all lines of FILE that match
// PATTERN. At least one line must match.
func same(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[2] + "$")
	ts.Check(err)
	lines, document := pattern.FindAllString(ts.ReadFile(args[0]), -1), "\n"+ts.ReadFile(args[1])
	for _, line := range lines {
		if !strings.Contains(document, "\n"+line+"\n") {
			ts.Fatalf("%s does not show this line:\n%s", args[1], line)
		}
	}
	if len(lines) == 0 {
		ts.Fatalf("%s has no such line", args[0])
	}
}

// upAndErase matches the control sequence with which live lines are redrawn.
var upAndErase = regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`)

// visibleLines returns the lines that a terminal shows after the output out. visibleLines supports line ends and the
// control sequence upAndErase.
func visibleLines(out string) []string {
	lines := []string{""}
	for len(out) > 0 {
		if up := upAndErase.FindStringSubmatch(out); up != nil {
			n, _ := strconv.Atoi(up[1])
			lines = append(lines[:max(0, len(lines)-1-n)], "")
			out = out[len(up[0]):]
			continue
		}
		switch out[0] {
		case '\n':
			lines = append(lines, "")
		case '\r':
		default:
			lines[len(lines)-1] += out[:1]
		}
		out = out[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
