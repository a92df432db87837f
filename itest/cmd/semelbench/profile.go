package main

import (
	"errors"
	"os"
	"runtime/pprof"

	"github.com/semel-go/semel/itest/bench"
)

// runProfiled calls the function measure. If file is set, runProfiled also writes a CPU profile of the process to this
// file.
func runProfiled(file string, measure func() ([]bench.Row, error)) (rows []bench.Row, err error) {
	if file == "" {
		return measure()
	}
	to, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := pprof.StartCPUProfile(to); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return measure()
}
