package paired

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel/itest/worlds/history"
)

// GoTable has the columns for Go benchmarks.
var GoTable = Table{Row: "benchmark", Main: Column{"ns", "%.0f"}, Beside: []Column{{"allocations", "%.2f"}, {"bytes", "%.0f"}}}

// GoBenchmarks are the Go benchmarks of one package, measured in two trees.
type GoBenchmarks struct {
	// Package is the folder of the package in both trees. If this folder has no tests in a tree, the benchmarks of the
	// tree's root folder are used, because earlier commits had their benchmarks there.
	Package string
	// Pattern selects benchmarks like `go test -bench`. With an empty pattern, all benchmarks that exist in
	// both trees are selected.
	Pattern string
	// Time is the duration of each benchmark, like `go test -benchtime`.
	Time string
}

// Build builds the test binaries of both trees in a folder.
func (g GoBenchmarks) Build(ctx context.Context, folder, baseTree, presentTree string) (base, present Measure, err error) {
	earlier, err := g.build(ctx, baseTree, filepath.Join(folder, "base.test"))
	if err != nil {
		return nil, nil, err
	}
	now, err := g.build(ctx, presentTree, filepath.Join(folder, "present.test"))
	if err != nil {
		return nil, nil, err
	}
	pattern := g.Pattern
	if pattern == "" {
		if pattern, err = commonPattern(ctx, earlier, now); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", g.Package, err)
		}
	}
	return earlier.measure(pattern, g.Time), now.measure(pattern, g.Time), nil
}

// testBinary is a compiled test package, with the working directory that its tests need.
type testBinary struct{ path, folder string }

func (g GoBenchmarks) build(ctx context.Context, tree, to string) (testBinary, error) {
	pkg := g.Package
	if tests, err := filepath.Glob(filepath.Join(tree, pkg, "*_test.go")); err != nil || len(tests) == 0 {
		pkg = "."
	}
	err := history.Go(ctx, tree, "test", "-c", "-o", to, "./"+filepath.Clean(pkg))
	return testBinary{path: to, folder: filepath.Join(tree, pkg)}, err
}

func (b testBinary) run(ctx context.Context, flags ...string) (string, error) {
	call := exec.CommandContext(ctx, b.path, flags...)
	call.Dir = b.folder
	printed, err := call.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", call, err, printed)
	}
	return string(printed), err
}

// commonPattern returns a pattern for the benchmarks that exist in both trees.
func commonPattern(ctx context.Context, one, other testBinary) (string, error) {
	var lists [2][]string
	for i, b := range []testBinary{one, other} {
		printed, err := b.run(ctx, "-test.list", "^Benchmark")
		if err != nil {
			return "", err
		}
		lists[i] = strings.Fields(printed)
	}
	both := slices.DeleteFunc(lists[0], func(name string) bool {
		return !strings.HasPrefix(name, "Benchmark") || !slices.Contains(lists[1], name)
	})
	if len(both) == 0 {
		return "", fmt.Errorf("base and present have no benchmark in common; the present has %q", lists[1])
	}
	return "^(" + strings.Join(both, "|") + ")$", nil
}

func (b testBinary) measure(pattern, time string) Measure {
	return func(ctx context.Context) (Sample, error) {
		printed, err := b.run(ctx, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", time, "-test.benchmem")
		if err != nil {
			return nil, err
		}
		return parseGo(printed)
	}
}

// parseGo parses the output of Go benchmarks. If a benchmark reports a value per message, parseGo uses this value
// instead of the value per operation.
func parseGo(printed string) (Sample, error) {
	s := Sample{}
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for pair := range slices.Chunk(words[2:], 2) {
			if len(pair) < 2 {
				return nil, fmt.Errorf("a figure without unit: %q", line)
			}
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil {
				return nil, fmt.Errorf("no figure: %q: %w", line, err)
			}
			values[pair[1]] = value
		}
		of := func(unit string) float64 {
			if value, is := values[unit+"/message"]; is {
				return value
			}
			return values[unit+"/op"]
		}
		name := strings.TrimPrefix(strings.TrimSuffix(words[0], fmt.Sprintf("-%d", runtime.GOMAXPROCS(0))), "Benchmark")
		if !strings.HasSuffix(name, "-missing") { // "-missing" only reports that a value is not available
			s[name] = Reading{Main: of("ns"), Beside: []float64{of("allocs"), of("B")}}
		}
	}
	return s, nil
}
