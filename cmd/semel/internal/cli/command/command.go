// Package command is what the commands of semel share: streams, flags, exit codes, connections to
// stores, and how a list is printed.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
	"golang.org/x/term"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say that a person reads there: tables fit the
	// width on Out, and progress is shown live on Err. Control characters are
	// escaped on both, whoever reads.
	OutTerminal, ErrTerminal bool
	// Width is how many columns the terminal on Out has, and Height how many lines; 0: unknown.
	Width, Height int
	// Env reads the environment, as os.LookupEnv does.
	Env func(string) (string, bool)
}

// UsualWidth is that of a terminal that does not say its own.
const UsualWidth = 80

// Terminal returns the streams of the process.
func Terminal() Streams {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width < 1 {
		width, height = UsualWidth, 0
	}
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width:       width,
		Height:      height,
		Env:         os.LookupEnv,
	}
}

// CLI is one call of semel: its streams, and the flags that most commands share.
type CLI struct {
	Streams
	// Raw are the streams without the escaping of what a terminal would obey,
	// for live lines and for the protocol between processes.
	Raw      Streams
	Config   string
	Consumer string
	Logs     Logging
	JSON     bool
}

// Remark writes a sentence to stderr; on a terminal of a usual width none is cut within a
// word.
func (c *CLI) Remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.ErrTerminal {
		text = terminal.Wrap(text, c.Width)
	}
	fmt.Fprintln(c.Err, text)
}

// Load reads the policy; its error is all of its faults.
func (c *CLI) Load() (*policy.Policy, error) {
	p, wrong := policy.Load(c.Config, c.Env)
	if len(wrong) > 0 {
		return nil, Faults(wrong)
	}
	return p, nil
}

// WriteJSON prints one document.
func (c *CLI) WriteJSON(v any) error {
	e := json.NewEncoder(terminal.JSON(c.Out))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return Failed(e.Encode(v))
}

// Live returns a line that shows on a terminal how far something is.
func (c *CLI) Live() *LiveLine { return &LiveLine{c: c, shown: time.Now()} }

// LiveLine is a line of a terminal that is written over again.
type LiveLine struct {
	c     *CLI
	shown time.Time
	any   bool
}

// show shows a line, once in a second at most.
func (l *LiveLine) show(line string) {
	if !l.c.ErrTerminal || time.Since(l.shown) < time.Second {
		return
	}
	l.shown, l.any = time.Now(), true
	fmt.Fprint(l.c.Raw.Err, "\r"+terminal.Cut(line, l.c.Width-1)+"\x1b[K")
}

// End removes the line.
func (l *LiveLine) End() {
	if l.any {
		fmt.Fprint(l.c.Raw.Err, "\r\x1b[K")
	}
}

// Printf writes the line, once in a second at most.
func (l *LiveLine) Printf(format string, args ...any) {
	l.show(legible.Printable(fmt.Sprintf(format, args...)))
}

// Wrapped is a text that fits the terminal behind so many columns, whole where nobody reads
// it on one.
func (c *CLI) Wrapped(text string, behind int) string {
	if !c.OutTerminal || c.Width-behind < FieldWidth {
		return text
	}
	return strings.ReplaceAll(terminal.Wrap(text, c.Width-behind), "\n  ", "\n"+strings.Repeat(" ", behind))
}

// FieldWidth is how many columns the names of fields take.
const FieldWidth = 20
