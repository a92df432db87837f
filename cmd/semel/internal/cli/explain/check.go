package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/check"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

func checkCommand(c *command.CLI) *cobra.Command {
	explain, asked, tests := 0, check.Asked{}, &proveFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check each consumer against a design review",
		Long: `Answer numbered questions about each consumer: what makes its effect happen
once, and whether that works. An answer is pass, fail with the remedy, or
"cannot know" with the reason. Without --prove the command changes nothing.

If a database or broker does not respond, fewer questions are answered.

--deep compares rows, markers, streams and intents, 5,000 rows in a statement.
It prints the last row that it read, also after an interrupt; --from ROW
continues there.

--prove tests the handlers instead: with duplicates, crashes and other failures,
in tables of its own, and with a provider of its own in place of an endpoint. It
writes the results to a file beside the policy, from which semel check answers
questions 4 and 18. The messages are those of --messages, or the first ones of a
source that is a file.

--explain N explains question N and its answers.

Exit code 4: at least one question has the answer fail, or a test failed.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := tests.check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("explain") {
				return explainQuestion(c, explain)
			}
			switch {
			case tests.enabled:
				return tests.run(cmd.Context(), c)
			case asked.Within <= 0:
				return command.UsageError("--timeout %v: give a positive duration, as 15s", asked.Within)
			case cmd.Flags().Changed("from") && !asked.Deep:
				return command.UsageError("--from is the row after which --deep continues: give both")
			case asked.From < 0:
				return command.UsageError("--from %d: give the number of a row, which an earlier run printed", asked.From)
			}
			return answer(cmd.Context(), c, asked)
		},
	}
	cmd.Flags().IntVar(&explain, "explain", 0, "only explain this question")
	cmd.Flags().BoolVar(&asked.Deep, "deep", false, "also compare rows with markers and streams")
	cmd.Flags().Int64Var(&asked.From, "from", 0, "with --deep, continue after this row number")
	cmd.Flags().DurationVar(&asked.Within, "timeout", 15*time.Second, "wait for each database and broker")
	tests.add(cmd)
	command.RefuseEmpty(cmd, "consumer", "messages", "setup", "ignore")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

// questionView shows a question and its explanation.
type questionView struct {
	Number  int    `json:"number"`
	Asks    string `json:"question"`
	Explain string `json:"explanation"`
}

func explainQuestion(c *command.CLI, number int) error {
	all := check.Questions()
	at := slices.IndexFunc(all, func(q check.Question) bool { return q.Number == number })
	if at < 0 {
		return command.UsageError("--explain %d: there is no such question; they have the numbers 1 to %d", number, all[len(all)-1].Number)
	}
	q := questionView{all[at].Number, all[at].Asks, all[at].Explain}
	if c.JSON {
		return c.WriteJSON(q)
	}
	_, err := fmt.Fprintf(c.Out, "%d. %s\n\n%s\n", q.Number, q.Asks, c.Wrapped(q.Explain, 0))
	return command.Failed(err)
}

// checkView shows the answers about a consumer.
type checkView struct {
	Consumer string       `json:"consumer"`
	Answers  []answerView `json:"answers"`
	Deep     *deepView    `json:"deep,omitempty"`
}

// deepView shows how many rows were compared with their markers, streams and causes.
type deepView struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Rows int64 `json:"rows"`
	// Intents is the number of compared rows that are intents of the consumer.
	Intents int64  `json:"intents"`
	All     bool   `json:"all"`
	Rest    string `json:"rest,omitempty"`
	// Denied has the numbers of rows that contradict their markers or streams. For an intent, the
	// contradiction can also be with the marker of the message that caused the intent.
	Denied []int64 `json:"denied"`
}

func deepOf(s *check.Subject) *deepView {
	if s.Facts == nil || s.Facts.Deep == nil {
		return nil
	}
	d := s.Facts.Deep
	v := &deepView{d.From, d.To, d.Rows, d.Intents, d.Rest == "", d.Rest, []int64{}}
	for _, denied := range d.Denied {
		v.Denied = append(v.Denied, denied.Row)
	}
	return v
}

// printDeep prints the last compared row, and the command that compares the next rows.
func printDeep(c *command.CLI, p *policy.Policy, subjects []*check.Subject, asked check.Asked) {
	if !asked.Deep {
		return
	}
	for _, s := range subjects {
		if d := deepOf(s); d != nil && d.Rest != "" {
			fmt.Fprintf(c.Err, "%s: rows after %d were not checked, because %s; continue with %s\n", legible.Printable(s.Consumer.Name), d.To, terminal.Line(d.Rest), terminal.Line(s.Command()))
		} else if d != nil {
			fmt.Fprintf(c.Err, "%s: checked up to row %d; check later rows with %s\n", legible.Printable(s.Consumer.Name), d.To, terminal.Line(s.Command()))
		}
	}
	for _, of := range p.Consumers {
		meant := asked.Consumer == "" || asked.Consumer == of.Name
		if meant && !slices.ContainsFunc(subjects, func(s *check.Subject) bool { return s.Consumer == of }) {
			line := terminal.Line(c.Suggest("check", "--deep", "--consumer", of.Name))
			fmt.Fprintf(c.Err, "%s: not checked; check it with %s\n", legible.Printable(of.Name), line)
		}
	}
}

type answerView struct {
	Number   int          `json:"number"`
	Asks     string       `json:"question"`
	Result   check.Result `json:"result"`
	Evidence string       `json:"evidence"`
	Remedy   string       `json:"remedy,omitempty"`
}

// answer answers all questions for the chosen consumers and prints the answers.
func answer(ctx context.Context, c *command.CLI, asked check.Asked) error {
	p, err := c.Load()
	if err != nil {
		return err
	}
	if c.Consumer != "" && p.Consumer(c.Consumer) == nil {
		return c.NoConsumer(p, c.Consumer)
	}
	if asked.Consumer = c.Consumer; asked.From > 0 && asked.Consumer == "" && len(p.Consumers) > 1 {
		return command.UsageError("--from: the row is one of a consumer's: name it with --consumer")
	}
	log, _, err := c.Log(c.Err)
	if err != nil {
		return err
	}
	var told sync.Map // every consumer opens its store, but a warning is printed once per store
	open := func(want func(*policy.Store) bool) (*assembly.Assembly, error) {
		a, err := assembly.Open(p, assembly.Options{Logger: log}, want, func(*policy.Store) bool { return false })
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, asked.Within)
			defer cancel()
			a.WarnOfRoles(limited, &told)
		}
		return a, err
	}
	subjects, failing := check.Subjects(ctx, p, asked, open), []string(nil)
	if ctx.Err() != nil && !asked.Deep {
		return ctx.Err()
	}
	views, counts := []checkView{}, map[check.Result]int{}
	for _, s := range subjects {
		v := checkView{Consumer: s.Consumer.Name, Deep: deepOf(s)}
		for _, q := range check.Questions() {
			a := q.Answer(s)
			v.Answers = append(v.Answers, answerView{q.Number, q.Asks, a.Result, a.Evidence, a.Remedy})
			if counts[a.Result]++; a.Result == check.Fail {
				failing = append(failing, fmt.Sprintf("%d of %s", q.Number, legible.Printable(v.Consumer)))
			}
		}
		views = append(views, v)
	}
	if err := printChecks(c, views, counts); err != nil {
		return err
	}
	printDeep(c, p, subjects, asked)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := counts[check.Fail]; n > 0 {
		return command.Found(fmt.Errorf("%s with fail; semel check --explain N says why it is asked: %s", output.Counted(n, n, "question")+map[bool]string{true: " is answered", false: " are answered"}[n == 1], strings.Join(failing, ", ")))
	}
	return nil
}

func printChecks(c *command.CLI, views []checkView, counts map[check.Result]int) error {
	if c.JSON {
		return c.WriteJSON(struct {
			Consumers     []checkView `json:"consumers"`
			Pass          int         `json:"pass"`
			Fail          int         `json:"fail"`
			CannotKnow    int         `json:"cannot_know"`
			NotApplicable int         `json:"not_applicable"`
		}{views, counts[check.Pass], counts[check.Fail], counts[check.CannotKnow], counts[check.NotApplicable]})
	}
	var b strings.Builder
	for i, v := range views {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "consumer %s\n", legible.Printable(v.Consumer))
		for _, a := range v.Answers {
			writeAnswer(c, &b, a)
		}
	}
	_, err := fmt.Fprint(c.Out, b.String())
	summary := fmt.Sprintf("%d pass, %d fail, %d cannot be known", counts[check.Pass], counts[check.Fail], counts[check.CannotKnow])
	if n := counts[check.NotApplicable]; n > 0 {
		summary += fmt.Sprintf(", %d do not apply", n)
	}
	fmt.Fprintln(c.Err, summary)
	return command.Failed(err)
}

// answerIndent is the indentation of the text below a question, in columns.
const answerIndent = 16

func writeAnswer(c *command.CLI, b *strings.Builder, a answerView) {
	words := map[check.Result]string{check.Pass: "pass", check.Fail: "FAIL", check.CannotKnow: "cannot know", check.NotApplicable: "n/a"}
	fmt.Fprintf(b, "%2d %-11s  %s\n", a.Number, words[a.Result], a.Asks)
	evidence := a.Evidence
	if a.Result == check.CannotKnow {
		evidence = "because " + evidence
	}
	remedy := a.Remedy
	if remedy != "" {
		remedy = "do: " + remedy
	}
	for _, text := range []string{evidence, remedy} {
		if text != "" {
			fmt.Fprintf(b, "%*s%s\n", answerIndent, "", c.Wrapped(terminal.Line(text), answerIndent))
		}
	}
}
