package paired

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestFiguresAMessageGoBeforeThoseAnOperation(t *testing.T) {
	printed := fmt.Sprintf(`goos: linux
BenchmarkNothing-%[1]d   	  300000	       900.1 ns/op	       523.0 B/message	         1.030 allocs/message	       899.0 ns/message	     523 B/op	       1 allocs/op
BenchmarkFingerprint/body=1KiB-%[1]d 	  100000	     13000 ns/op	  76.00 MB/s	       0 B/op	       2 allocs/op
BenchmarkBodies/body=webhooks-missing-%[1]d 	      20	      1761 ns/op
--- BENCH: BenchmarkBodies/body=webhooks-missing-%[1]d
    bench_test.go:26: the real webhooks are missing
PASS
`, runtime.GOMAXPROCS(0))
	got, err := parseGo(printed)
	want := Sample{"Nothing": {899, []float64{1.03, 523}}, "Fingerprint/body=1KiB": {13000, []float64{2, 0}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatIsNoFigureIsAnError(t *testing.T) {
	for _, printed := range []string{"BenchmarkA-2 100 fast ns/op\n", "BenchmarkA-2 100 12 ns/op 3\n"} {
		if s, err := parseGo(printed); err == nil {
			t.Errorf("%q is %v", printed, s)
		}
	}
	if _, err := parseSemelbench("semelbench: no server", "base"); err == nil || !strings.Contains(err.Error(), "what base printed is no report") {
		t.Error(err)
	}
}

func TestAFormIsComparedByItsRatioToBothRunsByHand(t *testing.T) {
	got, err := parseSemelbench(`{"rows":[{"form":"Queue","effect":"insert","workers":1,"ids":"UUIDv7","runs":{
		"semel":[{"messages":100,"took_ns":1000000000,"busy_ns":1000000}],"hand":[{"messages":100,"took_ns":1000000000}],"again":[{"messages":100,"took_ns":1000000000}]}},
		{"form":"Queue","effect":"insert","workers":8,"ids":"UUIDv7","body":"1KiB","runs":{
		"semel":[{"messages":500,"took_ns":1000000000,"busy_ns":5000000}],
		"hand":[{"messages":900,"took_ns":1000000000}],"again":[{"messages":1100,"took_ns":1000000000}]}}]}`, "base")
	want := Sample{"Queue": {1, []float64{100, 10}}, "Queue, insert, 8 workers, UUIDv7, bodies of 1KiB": {0.5, []float64{500, 10}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestALentFolderTakesThePlaceOfTheOthers(t *testing.T) {
	from, to := tree(t, "itest/bench", "// lent\n"), tree(t, "itest/bench", "// own\n")
	if err := errors.Join(os.WriteFile(filepath.Join(to, "itest/bench/gone.go"), nil, 0o644), Lend(from, to, "itest/bench")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to, "itest/bench/a_test.go"))
	if _, gone := os.Stat(filepath.Join(to, "itest/bench/gone.go")); err != nil || !strings.Contains(string(text), "lent") || gone == nil {
		t.Errorf("%s, %v, %v", text, err, gone)
	}
	if err := Lend(from, to, "itest/missing"); err == nil {
		t.Error("a folder that is missing was lent")
	}
}

// tree writes a module with one test file into a folder.
func tree(t *testing.T, folder, text string) string {
	t.Helper()
	top := t.TempDir()
	in := filepath.Join(top, folder)
	if err := os.MkdirAll(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(top, "go.mod"): "module example.org/tree\n\ngo 1.26\n", filepath.Join(top, "go.work"): "go 1.26\n\nuse .\n",
		filepath.Join(in, "a_test.go"): "package a\n\nimport \"testing\"\n\n" + text,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func benchmark(name string) string {
	return "func Benchmark" + name + "(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n"
}

func TestBenchmarksThatBothTreesHaveAreMeasured(t *testing.T) {
	earlier := tree(t, ".", benchmark("Engine")+benchmark("Gone")) // in earlier commits all benchmarks were in the root folder
	now := tree(t, "consumer", benchmark("Engine")+benchmark("New"))
	base, present, err := GoBenchmarks{Package: "./consumer", Time: "10x"}.Build(t.Context(), t.TempDir(), earlier, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []Measure{base, present} {
		s, err := side(t.Context())
		if _, is := s["Engine"]; err != nil || !is || len(s) != 1 {
			t.Errorf("%v, %v", s, err)
		}
	}
}

func TestABenchmarkThatFailsIsAnErrorWithWhatItSaid(t *testing.T) {
	broken := tree(t, "consumer", "func BenchmarkEngine(b *testing.B) { b.Fatal(\"no store\") }\n")
	base, _, err := GoBenchmarks{Package: "./consumer", Time: "1x"}.Build(t.Context(), t.TempDir(), broken, broken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base(t.Context()); err == nil || !strings.Contains(err.Error(), "no store") {
		t.Error(err)
	}
}

func TestTreesWithoutACommonBenchmarkAreAnError(t *testing.T) {
	earlier, now := tree(t, "consumer", benchmark("Gone")), tree(t, "consumer", benchmark("New"))
	_, _, err := GoBenchmarks{Package: "./consumer", Time: "1x"}.Build(t.Context(), t.TempDir(), earlier, now)
	if err == nil || !strings.Contains(err.Error(), `./consumer: base and present have no benchmark in common; the present has ["BenchmarkNew"`) {
		t.Error(err)
	}
}
