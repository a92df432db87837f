package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// Command is a command line, word by word.
type Command []string

// because adds the flag with which a person says why.
func (c Command) because() Command { return append(slices.Clip(c), "--because", "WHY") }

// command is one of semel's that meets the store which the facts are of.
func (f *Facts) command(words ...string) Command {
	return slices.Concat(Command{"semel"}, words, f.Where)
}

// rowCommand is a command that shows a row, act one that changes it; both are written with a space
// between their words.
func (f *Facts) rowCommand(name string, r *store.StoredRow) Command {
	return f.command(append(strings.Fields(name), fmt.Sprint(r.Number))...)
}

func (f *Facts) act(name string, r *store.StoredRow) Command { return f.rowCommand(name, r).because() }

func (f *Facts) show(r *store.StoredRow) Command {
	return f.rowCommand(f.verb("inbox show", "intents show"), r)
}
