package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// timed is a package or a test, how long it took, and its CPU time where scripts/raced
// printed that.
type timed struct {
	name      string
	took, cpu time.Duration
}

// results are what a stream of events says.
type results struct {
	out             *lines
	printed         map[string]*strings.Builder // what a package or test has printed; some print megabytes
	parents         map[string]bool             // tests with subtests, whose time is theirs
	cpu             map[string]time.Duration
	packages, tests []timed
	failed          []string // what those printed that failed
}

func newResults(out *lines) *results {
	return &results{out: out, printed: map[string]*strings.Builder{}, cpu: map[string]time.Duration{}, parents: map[string]bool{}}
}

// take reads an event; it says no to a line that is none.
func (r *results) take(line string) bool {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		return false
	}
	name := strings.Trim(e.Package+e.ImportPath+" "+e.Test, " ")
	switch e.Action {
	case "output", "build-output":
		if r.printed[name] == nil {
			r.printed[name] = &strings.Builder{}
		}
		r.printed[name].WriteString(e.Output)
		if strings.HasPrefix(e.Output, "cpu ") { // of scripts/raced
			var user, system float64
			if n, _ := fmt.Sscanf(e.Output, "cpu %f %f\n", &user, &system); n == 2 {
				r.cpu[name] += time.Duration((user + system) * float64(time.Second))
			}
		}
	case "pass", "fail", "skip", "build-fail":
		r.ended(e, name)
	}
	return true
}

func (r *results) ended(e event, name string) {
	if strings.HasSuffix(e.Action, "fail") {
		if e.Test == "" { // what ran when the process ended has no event of its own
			r.rest(e.Package + e.ImportPath + " ")
		}
		r.show(name)
	}
	delete(r.printed, name)
	took := timed{name, time.Duration(e.Elapsed * float64(time.Second)), r.cpu[name]}
	if slash := strings.LastIndex(name, "/"); e.Test != "" && strings.Contains(e.Test, "/") {
		r.parents[name[:slash]] = true
	}
	switch {
	case e.Test != "":
		if !r.parents[name] {
			r.tests = append(r.tests, took)
		}
	case e.Package != "" && e.Action != "skip":
		r.packages = append(r.packages, took)
		r.out.print("%-4s %s %.1f s", e.Action, name, e.Elapsed)
	}
}

// rest shows what was printed by those of whom nobody said how they ended.
func (r *results) rest(prefix string) {
	for _, name := range slices.Sorted(maps.Keys(r.printed)) {
		if strings.HasPrefix(name, prefix) {
			r.show(name)
			delete(r.printed, name)
		}
	}
}

// show shows what is known of a failure, now and in the report.
func (r *results) show(name string) {
	text := ""
	if printed := r.printed[name]; printed != nil {
		text = strings.TrimRight(printed.String(), "\n")
	}
	r.out.print("%s", text)
	r.failed = append(r.failed, text)
}
