//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-go/semel/itest/bench/paired"
	"github.com/semel-go/semel/itest/proof/file"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// compareFile compares runs over a file of webhooks. As in the fault test itest/proof/file, many of the deliveries are
// duplicates.
func (f flags) compareFile(ctx context.Context, t trees, folder string) error {
	hooks, err := webhooks.Load(f.webhooks)
	if err != nil {
		return err
	}
	base, present := f.against, filepath.Join(folder, "present")
	if base == "" {
		base = filepath.Join(folder, "base")
		if err := paired.BuildFile(ctx, t.base, base); err != nil {
			return err
		}
	}
	if err := paired.BuildFile(ctx, t.present, present); err != nil {
		return err
	}
	run := paired.FileRun{Folder: folder, Cores: []int{1, 2}, Input: file.Input{Webhooks: hooks, Deliveries: f.deliveries, IDs: f.deliveries * 3 / 10, Seed: 1}}
	size, err := run.Prepare()
	if err != nil {
		return err
	}
	fmt.Printf("%d deliveries of %d webhooks, %.0f MB, from a file into SQLite.\n", run.Input.Deliveries, run.Input.IDs, float64(size)/1e6)
	c, err := paired.Compare(ctx, f.rounds, run.Measure(base), run.Measure(present), os.Stderr)
	if len(c.Rounds) == 0 {
		return err
	}
	err = errors.Join(err, paired.FileTable.Write(os.Stdout, c, t.baseName, t.presentName))
	earlier, now := c.Cores(1, 2)
	fmt.Printf("\nTwo cores : one core: base %s, present %s.\n", earlier.Text("%.2f"), now.Text("%.2f"))
	return err
}
