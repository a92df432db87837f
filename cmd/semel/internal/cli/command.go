package cli

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

// usualWidth is that of a terminal that does not say its own.
const usualWidth = 80

// Terminal returns the streams of the process.
func Terminal() Streams {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width < 1 {
		width, height = usualWidth, 0
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

// common are the flags that most commands share.
type common struct {
	Streams
	// raw are the streams without the escaping of what a terminal would obey,
	// for live lines and for the protocol between processes.
	raw      Streams
	config   string
	consumer string
	logs     logging
	json     bool
}

// remark writes a sentence to stderr; on a terminal of a usual width none is cut within a
// word.
func (c *common) remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.ErrTerminal {
		text = terminal.Wrap(text, c.Width)
	}
	fmt.Fprintln(c.Err, text)
}

// load reads the policy; its error is all of its faults.
func (c *common) load() (*policy.Policy, error) {
	p, wrong := policy.Load(c.config, c.Env)
	if len(wrong) > 0 {
		return nil, faults(wrong)
	}
	return p, nil
}

// writeJSON prints one document.
func (c *common) writeJSON(v any) error {
	e := json.NewEncoder(terminal.JSON(c.Out))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return failed(e.Encode(v))
}

// liveLine shows on a terminal how far something is.
func (c *common) liveLine() *liveLine { return &liveLine{c: c, shown: time.Now()} }

type liveLine struct {
	c     *common
	shown time.Time
	any   bool
}

// show shows a line, once in a second at most.
func (l *liveLine) show(line string) {
	if !l.c.ErrTerminal || time.Since(l.shown) < time.Second {
		return
	}
	l.shown, l.any = time.Now(), true
	fmt.Fprint(l.c.raw.Err, "\r"+terminal.Cut(line, l.c.Width-1)+"\x1b[K")
}

func (l *liveLine) end() {
	if l.any {
		fmt.Fprint(l.c.raw.Err, "\r\x1b[K")
	}
}

// printf shows how far an erasure is, on a terminal.
func (l *liveLine) printf(format string, args ...any) {
	l.show(legible.Printable(fmt.Sprintf(format, args...)))
}

// wrapped is a text that fits the terminal behind so many columns, whole where nobody reads
// it on one.
func (c *common) wrapped(text string, behind int) string {
	if !c.OutTerminal || c.Width-behind < fieldWidth {
		return text
	}
	return strings.ReplaceAll(terminal.Wrap(text, c.Width-behind), "\n  ", "\n"+strings.Repeat(" ", behind))
}

// fieldWidth is how many columns the names of fields take.
const fieldWidth = 20
