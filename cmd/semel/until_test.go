package main

import (
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// longest is how long tests wait for what another process does. It only ends those that
// wait for what never comes: where everything runs at once, a minute is not enough.
const longest = 5 * time.Minute

// eventually waits until ok, which may start a process: it is not asked again at once.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(longest), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s, in %v", what, longest)
		}
	}
}

// until CODE COMMAND... runs a command again and again, until it exits with CODE.
func until(ts *testscript.TestScript, _ bool, args []string) {
	deadline, tick := time.After(longest), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		code := 0
		err := ts.Exec(args[1], args[2:]...)
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			code = exit.ExitCode()
		case err != nil:
			ts.Fatalf("%v", err)
		}
		if strconv.Itoa(code) == args[0] {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("exit code %d, not %s, for %v", code, args[0], longest)
		}
	}
}

// says PATTERN COMMAND... runs a command again and again, until a line that it prints is so.
func says(ts *testscript.TestScript, _ bool, args []string) {
	deadline, tick := time.After(longest), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for {
		if err := ts.Exec(args[1], args[2:]...); err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("it has not said %s for %v", args[0], longest)
		}
	}
}

// scrape LINE... reads what a run serves at /metrics of $PORT again and again, until it has
// these lines.
func scrape(ts *testscript.TestScript, _ bool, lines []string) {
	deadline, tick := time.After(longest), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		response, err := http.Get("http://127.0.0.1:" + ts.Getenv("PORT") + "/metrics")
		ts.Check(err)
		text, err := io.ReadAll(response.Body)
		ts.Check(errors.Join(err, response.Body.Close()))
		missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(string(text), "\n"+line+"\n") })
		if len(missing) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s\nhas no %q", text, missing)
		}
	}
}
