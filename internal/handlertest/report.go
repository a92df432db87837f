package handlertest

import (
	"errors"
	"fmt"
	"strings"
)

// Group is the kind of failure that a subtest causes.
type Group string

// The groups of subtests, in the order of the report.
const (
	First        Group = "first delivery"
	Redelivery   Group = "redelivery"
	Duplicates   Group = "duplicates"
	BeforeCommit Group = "crash before COMMIT"
	AfterCommit  Group = "crash after COMMIT"
	Poison       Group = "poison message"
	DeadLetters  Group = "dead-letter retry"
	Versions     Group = "versions"
	Retention    Group = "retention expired"
	Calls        Group = "calls to a provider"
)

// Groups returns all groups, in the order of the report.
func Groups() []Group {
	return []Group{First, Redelivery, Duplicates, BeforeCommit, AfterCommit, Poison, DeadLetters, Versions, Retention, Calls}
}

// Result is how a subtest ended: nil, a *NotRun, or the fault that it found.
type Result struct {
	Name  string
	Group Group
	Err   error
}

// NotRun contains the reason why a subtest does not apply.
type NotRun struct{ Why string }

func (e *NotRun) Error() string { return "not run: " + e.Why }

// Applies reports whether the subtest ran.
func (r Result) Applies() bool {
	var skip *NotRun
	return !errors.As(r.Err, &skip)
}

// Says returns the description of a fault, or the reason why the subtest does not apply, or "" after a success.
func (r Result) Says() string {
	var skip *NotRun
	if errors.As(r.Err, &skip) {
		return skip.Why
	}
	if r.Err == nil {
		return ""
	}
	says, _, _ := strings.Cut(r.Err.Error(), "\n")
	return says
}

// Report contains all results. The String method of Report prints a table, in which each fault is described once. The
// last line says what the subtests compared.
type Report []Result

func (r Report) String() string {
	var b strings.Builder
	b.WriteString("\n")
	said, failed := map[string]string{}, map[string]bool{}
	for _, x := range r {
		word, why := "ok", x.Says()
		switch {
		case !x.Applies():
			word = "-"
		case x.Err != nil:
			word, failed[x.Name] = "FAIL", true
		}
		if by := said[why]; by != "" && word == "FAIL" {
			why = "see " + by
		} else {
			said[why] = x.Name
		}
		if x.Name == orderName && failed[orderName] && failed[rollbackName] {
			why += " (perhaps for the same reason)"
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-4s  %-43s  %s", word, x.Name, why), " ") + "\n")
	}
	b.WriteString("compared: only what Effect returns\n")
	return b.String()
}
