// Package command has what the commands of semel share: streams, flags, exit codes, opening of stores, and
// the printing of lists.
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

// Streams are the input and the outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// OutTerminal and ErrTerminal report whether Out and Err are terminals. On a terminal, tables fit the
	// width of Out, and Err shows live progress. Control characters are always escaped.
	OutTerminal, ErrTerminal bool
	// Width and Height are the size of the terminal on Out, or else on Err, in columns and lines; 0 if
	// unknown.
	Width, Height int
	// Env looks up an environment variable, like os.LookupEnv.
	Env func(string) (string, bool)
}

// UsualWidth is the assumed width of a terminal with unknown width, in columns.
const UsualWidth = 80

// Terminal returns the standard streams of the process.
func Terminal() Streams {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width, height, err = term.GetSize(int(os.Stderr.Fd()))
	}
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

// CLI has the streams of one run of the program, and the flags that most commands share.
type CLI struct {
	Streams
	// Raw are the streams without escaping. Live lines and the protocol between processes need streams without
	// escaping.
	Raw      Streams
	Config   string
	Consumer string
	Logs     Logging
	JSON     bool
	target   targetFlags
}

// Remark writes a sentence to standard error. On a terminal, Remark wraps the sentence between words.
func (c *CLI) Remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.ErrTerminal {
		text = terminal.Wrap(text, c.Width)
	}
	fmt.Fprintln(c.Err, text)
}

// Load reads the policy. If the policy has faults, the error is of type Faults and contains all faults.
func (c *CLI) Load() (*policy.Policy, error) {
	p, wrong := policy.Load(c.Config, c.Env)
	if len(wrong) > 0 {
		return nil, Faults(wrong)
	}
	p.Suggest, c.target.hasSeveral = c.Suggest, len(p.Databases()) > 1
	return p, nil
}

// WriteJSON prints v as one indented JSON document.
func (c *CLI) WriteJSON(v any) error {
	e := json.NewEncoder(terminal.JSON(c.Out))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return Failed(e.Encode(v))
}

// Live returns a line that shows progress on a terminal.
func (c *CLI) Live() *LiveLine { return &LiveLine{c: c, shown: time.Now()} }

// LiveLine is a line on a terminal. Each update overwrites the previous text of the line.
type LiveLine struct {
	c     *CLI
	shown time.Time
	any   bool
}

// show overwrites the line, at most once a second.
func (l *LiveLine) show(line string) {
	if !l.c.ErrTerminal || time.Since(l.shown) < time.Second {
		return
	}
	l.shown, l.any = time.Now(), true
	fmt.Fprint(l.c.Raw.Err, "\r"+terminal.Cut(line, l.c.Width-1)+"\x1b[K")
}

// End clears the line.
func (l *LiveLine) End() {
	if l.any {
		fmt.Fprint(l.c.Raw.Err, "\r\x1b[K")
	}
}

// Printf formats and shows the line, at most once a second.
func (l *LiveLine) Printf(format string, args ...any) {
	l.show(legible.Printable(fmt.Sprintf(format, args...)))
}

// Wrapped wraps text to the width of the terminal on Out. All lines after the first are indented; the
// parameter behind is the number of columns. If Out is not a terminal, or the terminal is too narrow, Wrapped
// returns text unchanged.
func (c *CLI) Wrapped(text string, behind int) string {
	if !c.OutTerminal || c.Width-behind < FieldWidth {
		return text
	}
	return strings.ReplaceAll(terminal.Wrap(text, c.Width-behind), "\n  ", "\n"+strings.Repeat(" ", behind))
}

// FieldWidth is the width of field names, in columns.
const FieldWidth = 20
