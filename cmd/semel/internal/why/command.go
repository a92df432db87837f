package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// Command is a command line, word by word.
type Command []string

// because adds the flag for the reason.
func (c Command) because() Command { return append(slices.Clip(c), "--because", "WHY") }

// command returns a command of semel with the flags that select the store of the facts.
func (f *Facts) command(words ...string) Command {
	return slices.Concat(Command{"semel"}, words, f.Where)
}

// rowCommand returns a command that shows a row, and act one that changes it. name has spaces between its
// words.
func (f *Facts) rowCommand(name string, r *store.StoredRow) Command {
	return f.command(append(strings.Fields(name), fmt.Sprint(r.Number))...)
}

func (f *Facts) act(name string, r *store.StoredRow) Command { return f.rowCommand(name, r).because() }

func (f *Facts) show(r *store.StoredRow) Command {
	return f.rowCommand(f.verb("messages show", "intents show"), r)
}
