package main

import (
	"strings"
	"testing"
	"time"
)

// crashed is the output of `go test -json` for a package whose process ends during a test: because of a panic in
// another goroutine, -timeout, a fatal error of the runtime, or a kill. At the end, the output belongs to the test, and
// no event reports that the test has ended.
const crashed = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 30m0s\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"goroutine 19 [running]:\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t1800.1s\n"}
{"Action":"fail","Package":"p","Elapsed":1800.1}
{"Action":"run","Package":"q","Test":"TestB"}
{"Action":"output","Package":"q","Test":"TestB","Output":"the last words of q\n"}
`

func TestTheCrashOfAPackageIsShown(t *testing.T) {
	var text strings.Builder
	out := &lines{to: &text}
	p := &part{name: "suites", tests: newResults(out)}
	if err := p.follow(strings.NewReader(crashed), out); err != nil {
		t.Fatal(err)
	}
	report(out, []*part{p}, time.Minute)
	for _, want := range []string{"panic: test timed out", "goroutine 19 [running]", "the last words of q"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
}
