package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/linediff"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

type editFlags struct {
	store, file, who, why string
	yes, dryRun           bool
}

func editCommand(c *command.CLI) *cobra.Command {
	e := &editFlags{}
	cmd := &cobra.Command{
		Use:   "edit NUMBER --payload FILE --because TEXT",
		Short: "Replace the payload of a message",
		Long: `Replace the payload of a parked or dead message, after showing the difference.
Without --payload, edit it in $EDITOR. Identity, key and headers stay. If the
policy finds the type in the payload, the message gets the type of the new one.
messages show --payload shows earlier payloads. Retry the message afterwards.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("give one row number; semel messages ls shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			numbers, err := parseNumbers(args)
			if err != nil {
				return err
			}
			if err := command.CheckRecord(&e.who, e.why, e.dryRun); err != nil {
				return err
			}
			return edit(cmd.Context(), c, numbers[0], e)
		},
	}
	cmd.Flags().StringVar(&e.file, "payload", "", "file with the new payload; - is standard input")
	command.YesFlag(cmd, &e.yes)
	cmd.Flags().BoolVar(&e.dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().StringVar(&e.store, "store", "", "a store of the policy, postgres://… or sqlite:FILE")
	command.RecordFlags(cmd, &e.who, &e.why)
	command.RefuseEmpty(cmd, "payload", "store")
	return c.WithConfig(cmd)
}

// editOutput is the JSON output of the command edit.
type editOutput struct {
	Verb     string `json:"verb"`
	DryRun   bool   `json:"dry_run"`
	Store    string `json:"store"`
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	ID       string `json:"id"`
	Changed  bool   `json:"changed"`
	// TypeBefore and TypeAfter are empty if the edit keeps the type.
	TypeBefore string `json:"type_before,omitempty"`
	TypeAfter  string `json:"type_after,omitempty"`
	operate.EditView
}

// edit prints the difference between the old and the new payload, and replaces the payload.
func edit(ctx context.Context, c *command.CLI, number int64, e *editFlags) error {
	a, err := c.OpenBox(ctx, e.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	box := command.BoxOf(a.Stores[0])
	row, err := box.Editable(ctx, number)
	if err != nil {
		return editError(err)
	}
	body, err := newBody(ctx, c, row, e)
	if err != nil {
		return err
	}
	if err := sameIdentity(a, row, body); err != nil {
		return command.Failed(err)
	}
	v := editOutput{Verb: "edit", DryRun: e.dryRun, Store: box.Store, Number: number, Consumer: row.Key.Consumer, ID: row.Key.ID,
		Changed: !bytes.Equal(body, row.Message.Body), EditView: operate.NewEdit(row.Message.Body, body)}
	if v.TypeAfter = newType(a, row, body); v.TypeAfter != "" {
		v.TypeBefore = row.Message.Type()
	}
	if !c.JSON {
		printEdit(c, v)
	}
	if v.Changed && !e.dryRun {
		if err := confirmEdit(c, e); err != nil {
			return err
		}
		if err := box.Edit(ctx, row, operate.Editing{Body: body, Type: v.TypeAfter, Who: e.who, Why: e.why}); err != nil {
			return editError(err)
		}
	}
	if c.JSON {
		return c.WriteJSON(v)
	}
	if v.Changed && !e.dryRun {
		retry := terminal.Line(c.SuggestIn(v.Store, "messages", "retry", fmt.Sprint(number), "--because", "WHY"))
		fmt.Fprintf(c.Out, "%d %s %s: edited; retry it: %s\n", number, legible.Printable(v.Consumer), legible.Printable(v.ID), retry)
	}
	return nil
}

// editError returns the error for a row that was not edited, with a remedy.
func editError(err error) error {
	if errors.Is(err, semel.ErrConflict) && !errors.Is(err, admin.ErrOpen) {
		err = fmt.Errorf("%w: it is not edited; correct the effect by hand if needed, and discard this row", err)
	}
	return command.Failed(err)
}

// newBody returns the new payload: the content of the given file, or the text that the user saved in an
// editor.
func newBody(ctx context.Context, c *command.CLI, row store.StoredRow, e *editFlags) ([]byte, error) {
	if e.file != "" {
		in, err := c.OpenInput(e.file)
		if err != nil {
			return nil, command.Failed(err)
		}
		defer in.Close()
		body, err := io.ReadAll(io.LimitReader(in, admin.MaxEdit+1))
		if err == nil && len(body) > admin.MaxEdit {
			err = fmt.Errorf("file %s: a payload has at most %d bytes", e.file, admin.MaxEdit)
		}
		if !bytes.HasSuffix(row.Message.Body, []byte("\n")) { // editors add a line break at the end of a file
			body = bytes.TrimSuffix(body, []byte("\n"))
		}
		return body, command.Failed(err)
	}
	editor, _ := c.Env("EDITOR")
	if strings.TrimSpace(editor) == "" || !c.OutTerminal {
		return nil, command.UsageError("--payload is missing: name a file that has the new payload, or set EDITOR on a terminal")
	}
	body, err := inEditor(ctx, c, editor, row.Message.Body)
	return body, command.Failed(err)
}

// inEditor lets the user edit a payload in an editor. The editor shows JSON with line breaks. If the old
// JSON was compact, inEditor returns the new JSON in compact form.
func inEditor(ctx context.Context, c *command.CLI, editor string, body []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "semel-edit")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "payload")
	shown := linediff.Pretty(body)
	if err := os.WriteFile(name, []byte(shown), 0o600); err != nil {
		return nil, err
	}
	words := append(strings.Fields(editor), name)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Raw.In, c.Raw.Out, c.Raw.Err
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %s: %w: nothing was changed", words[0], err)
	}
	text, err := os.ReadFile(name)
	switch {
	case err != nil:
		return nil, err
	case string(text) == shown:
		return body, nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil || compact.String() != string(body) {
		return text, nil
	}
	compact.Reset()
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("your text is not JSON, and the payload was: %w: nothing was changed", err)
	}
	return compact.Bytes(), nil
}

// sameIdentity returns an error if the new payload gives the message another identity under the policy.
func sameIdentity(a *assembly.Assembly, row store.StoredRow, body []byte) error {
	public, _ := admin.GenerationOf(row.Key.Consumer)
	of := a.Policy().Consumer(public)
	if of == nil {
		return nil
	}
	by := of.Config().Identity
	if by == nil {
		return nil
	}
	m := *row.Message
	source, id, err := by.Identify(&m)
	if err != nil || source != row.Key.Source || id != row.Key.ID {
		return nil // another policy found the row's identity, so no comparison is possible
	}
	m.Body = body
	if source, id, err = by.Identify(&m); err != nil {
		return fmt.Errorf("the policy finds no identity in the new payload: %w; an edit keeps the identity", err)
	}
	if source != row.Key.Source || id != row.Key.ID {
		return errors.New("the new payload has another identity; an edit keeps the identity: have another message sent for the other one")
	}
	return nil
}

// newType returns the type that the policy finds in the new payload, or "" if the edit keeps the type of the row.
func newType(a *assembly.Assembly, row store.StoredRow, body []byte) string {
	public, _ := admin.GenerationOf(row.Key.Consumer)
	of := a.Policy().Consumer(public)
	if of == nil {
		return ""
	}
	m := *row.Message
	m.Body = body
	if kind := of.Typed(&m).Type(); kind != row.Message.Type() {
		return kind
	}
	return ""
}

// shortSum is the number of printed digits of a hash.
const shortSum = 16

func printEdit(c *command.CLI, v editOutput) {
	switch {
	case !v.Changed:
		fmt.Fprintf(c.Err, "row %d has this payload: nothing to change\n", v.Number)
		return
	case v.Diff != "":
		writeDiff(c.Out, v.Diff)
	}
	before, after := v.Before, v.After
	if c.OutTerminal {
		before, after = before[:shortSum]+"…", after[:shortSum]+"…"
	}
	fmt.Fprintf(c.Out, "sha256 %s (%d bytes) to %s (%d bytes)\n", before, v.SizeBefore, after, v.SizeAfter)
	if v.TypeAfter != "" {
		fmt.Fprintf(c.Out, "type %q to %q\n", v.TypeBefore, v.TypeAfter)
	}
}

// writeDiff prints a difference between payloads. The printed difference keeps the indentation.
func writeDiff(w io.Writer, diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimLeft(line[1:], " ")
		fmt.Fprintln(w, line[:len(line)-len(text)]+legible.Printable(text))
	}
}

// confirmEdit asks for confirmation. Without a terminal, the user must give the flag --yes.
func confirmEdit(c *command.CLI, e *editFlags) error {
	switch {
	case e.yes:
		return nil
	case !c.Asks() || e.file == "-":
		return command.UsageError("--yes is missing; --dry-run shows what would change")
	}
	return c.Ask("replace the payload?")
}
