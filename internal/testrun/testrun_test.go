package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const stream = `starting servers
{"Action":"build-output","ImportPath":"broken","Output":"a.go:1: undefined: b\n"}
{"Action":"build-fail","ImportPath":"broken"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"nobody reads this\n"}
{"Action":"pass","Package":"p","Test":"TestGood/sub","Elapsed":11}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":12}
{"Action":"output","Package":"p","Test":"TestBad","Output":"this is why\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":12.3}
{"Action":"skip","Package":"empty","Elapsed":0}
{"Action":"output","Package":"q","Output":"cpu 1.500 2.250\n"}
{"Action":"pass","Package":"q","Elapsed":20.5}
{unfinished`

func TestOfATestRunFailuresAndTimesAreShown(t *testing.T) {
	var text strings.Builder
	out := &lines{to: &text}
	p := &part{name: "suites", tests: newResults(out)}
	if err := p.follow(strings.NewReader(stream), out); err != nil {
		t.Fatal(err)
	}
	report(out, []*part{p}, time.Minute)
	for _, want := range []string{"suites: starting servers\n", "undefined: b\n", "this is why\n", "fail p 12.3 s\n", "suites: {unfinished\n",
		"measured, of 2:\n   20.5     3.8  q\n   12.3     0.0  p\n", "10s and more:\n   11.0  p TestGood/sub\nparts"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if _, end, _ := strings.Cut(text.String(), " in all\n"); !strings.Contains(end, "failed in suites:\nthis is why\n") {
		t.Errorf("the failure is not at the end of the output: %q", end)
	}
	if strings.Contains(text.String(), "nobody") {
		t.Error("the output contains what a passing test printed")
	}
	if t.Failed() {
		t.Log(text.String())
	}
}

func TestAPartThatFailsIsAFailure(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Makefile"), []byte("good:\n\t@echo fine\nbad:\n\t@echo why; exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	for name, says := range map[string]string{"good": "good: fine\n", "bad": "bad: why\n", "none": "none: "} {
		var text strings.Builder
		out := &lines{to: &text}
		p := &part{name: name, tests: newResults(out)}
		p.run(out)
		if (p.err == nil) != (name == "good") || !strings.Contains(text.String(), says) || p.took == 0 {
			t.Errorf("%s took %s and ended with %v: %s", name, p.took, p.err, text.String())
		}
	}
}
