package runs

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
	"github.com/spf13/cobra"
)

func positionsCommand(c *command.CLI) *cobra.Command {
	return command.Group("positions", "Compare and reset positions after a restore", positionsPlan(c), positionsReset(c), positionsAccept(c))
}

// grouped is a consumer with a group, and what is known of its partitions.
type grouped struct {
	consumer   *policy.Consumer
	recovery   *kafka.Recovery
	partitions []operate.PositionView
}

// withGroups has work done with the wanted consumers that have groups.
func withGroups(ctx context.Context, c *command.CLI, bare *bareGroup, work func(*assembly.Assembly, []grouped) error) error {
	p, err := bare.load(c)
	if err != nil {
		return err
	}
	if c.Consumer != "" && p.Consumer(c.Consumer) == nil {
		return c.NoConsumer(p, c.Consumer)
	}
	store := ""
	if c.Consumer != "" {
		store = p.Consumer(c.Consumer).Store
	}
	a, err := c.OpenChecked(ctx, p, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	all, err := groups(ctx, c, a, p)
	defer func() {
		for _, g := range all {
			g.recovery.Close()
		}
	}()
	if err != nil {
		return command.Failed(err)
	}
	return work(a, all)
}

func groups(ctx context.Context, c *command.CLI, a *assembly.Assembly, p *policy.Policy) (all []grouped, err error) {
	for _, consumer := range p.Consumers {
		if c.Consumer != "" && consumer.Name != c.Consumer {
			continue
		}
		recovery, err := a.Recovery(consumer)
		if err != nil {
			return all, err
		}
		if recovery == nil {
			fmt.Fprintf(c.Err, "consumer %s reads no topic: the position of a file is in the database of its effects,\nand is restored with it\n", legible.Printable(consumer.Name))
			continue
		}
		g := grouped{consumer: consumer, recovery: recovery}
		g.partitions, err = operate.Positions(ctx, consumer.Name, p.Source(consumer.From).Kafka.GroupOf(consumer), recovery)
		if all = append(all, g); err != nil {
			return all, fmt.Errorf("consumer %s: %w", consumer.Name, err)
		}
	}
	return all, nil
}

func positionsPlan(c *command.CLI) *cobra.Command {
	l, bare := &command.Listing{}, &bareGroup{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show positions and what a reset would change",
		Long: `Plan shows of each partition how far the store knows it to be done, how far the
group does, and where the log begins and ends. It changes nothing, and can be
asked while the consumers run. It exits with 4 if a group is ahead of its store:

  behind   the store has lost what it had: it was restored, or failed over
  ahead    a person has set the group's offset, or an older release committed it

and with 0 otherwise:

  level      the store has all that the group counts as done
  unknown    the store has no position of the partition yet
  not_begun  the group has no offset`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return withGroups(cmd.Context(), c, bare, func(_ *assembly.Assembly, all []grouped) error { return plan(c, all, bare, l) })
		},
	}
	l.Add(c, cmd, 0, "partitions")
	bare.add(cmd)
	command.RefuseEmpty(cmd, "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

// plan prints the partitions, and on stderr what sets them right.
func plan(c *command.CLI, all []grouped, bare *bareGroup, l *command.Listing) error {
	views, total, ahead, byPerson, missing := []operate.PositionView{}, 0, 0, 0, int64(0)
	for _, g := range all {
		for _, v := range g.partitions {
			total++
			if v.Ahead() {
				ahead++
				missing += v.Missing
				if v.ByPerson() {
					byPerson++
				}
			}
			if !l.Full(len(views)) {
				views = append(views, v)
			}
		}
	}
	if c.JSON {
		document := struct {
			Partitions []operate.PositionView `json:"partitions"`
			Count      int                    `json:"count"`
			Ahead      int                    `json:"ahead"`
			Missing    int64                  `json:"missing"`
		}{views, total, ahead, missing}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	} else {
		if err := command.PrintTable(c, l, views, positionColumns); err != nil {
			return err
		}
		fmt.Fprintln(c.Err, output.Counted(len(views), total, "partition"))
	}
	if ahead == 0 {
		return nil
	}
	what := fmt.Sprintf("in %s a group is ahead of its store, and the effects of up to %s may be missing", output.Counted(ahead, ahead, "partition"), output.Counted(int(missing), int(missing), "record"))
	return command.Found(fmt.Errorf("%s; %s", what, remedy(c, bare, ahead, byPerson)))
}

// remedy says what sets those partitions right, of which some were set by a person.
func remedy(c *command.CLI, bare *bareGroup, ahead, byPerson int) string {
	line := resetLine(c, bare)
	switch byPerson {
	case 0:
		return "stop the consumers, then: " + line
	case ahead:
		return fmt.Sprintf("a person, or an older release, has set %s so: if that was a mistake, stop the consumers, then: %s --ahead", map[bool]string{true: "it", false: "them"}[ahead == 1], line)
	}
	return fmt.Sprintf("stop the consumers, then: %s; of them %d set so by a person, or an older release: --ahead sets those back, too", line, byPerson)
}

// resetLine is the command that sets groups back.
func resetLine(c *command.CLI, bare *bareGroup) string {
	words := []string{"semel", "positions", "reset"}
	if bare.store != "" {
		words = append(words, bare.words()...)
	} else {
		words = append(words, "--config", c.Config)
	}
	if c.Consumer != "" {
		words = append(words, "--consumer", c.Consumer)
	}
	return command.Shell(append(words, "--because", "restored from a backup")...)
}

func positionColumns(views []operate.PositionView, wide bool) []output.Column[operate.PositionView] {
	type view = operate.PositionView
	consumer := func(v view) string { return v.Consumer }
	group := func(v view) string { return v.Group }
	number := func(title string, show bool, of func(view) *int64) output.Column[view] {
		return output.Text(title, func(v view) string { return output.MaybeNumber(of(v)) }).If(show)
	}
	return []output.Column[view]{
		output.Flexible("CONSUMER", consumer).If(wide).OrVaried(),
		output.Flexible("GROUP", group).If(wide).OrVaried(),
		output.Flexible("PARTITION", view.Name),
		output.Text("STANDING", func(v view) string { return v.Standing }),
		number("STORE", true, func(v view) *int64 { return v.StoreAt }),
		number("GROUP AT", true, func(v view) *int64 { return v.GroupAt }),
		number("LOG START", wide, func(v view) *int64 { return &v.LogStart }),
		number("LOG END", wide, func(v view) *int64 { return &v.LogEnd }),
		number("RESET TO", true, func(v view) *int64 { return v.To }),
		number("MISSING", true, func(v view) *int64 { return &v.Missing }),
		number("GONE", wide, func(v view) *int64 { return &v.Gone }).OrVaried(),
	}
}

// bareGroup says in flags what a policy says about a consumer of Kafka, for Go programs that
// have no policy.
type bareGroup struct {
	store, group    string
	brokers, topics []string
}

// add adds the flags.
func (b *bareGroup) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&b.store, "store", "", "a database without a policy: postgres://… or sqlite:FILE; with --consumer, --brokers and --topics")
	flags.StringSliceVar(&b.brokers, "brokers", nil, "with --store: brokers of Kafka, as host:port")
	flags.StringSliceVar(&b.topics, "topics", nil, "with --store: the topics that the consumer reads")
	flags.StringVar(&b.group, "group", "", "with --store: the consumer group, if it is not the consumer's name")
	command.RefuseEmpty(cmd, "store", "brokers", "topics", "group")
}

// load is the policy, or with --store what the flags say.
func (b *bareGroup) load(c *command.CLI) (*policy.Policy, error) {
	if b.store == "" {
		if len(b.brokers) > 0 || len(b.topics) > 0 || b.group != "" {
			return nil, command.UsageError("--brokers, --topics and --group need --store; a policy says them for its consumers")
		}
		return c.Load()
	}
	switch {
	case !policy.IsPlace(b.store):
		return nil, command.UsageError("--store is a database here, as postgres://… or sqlite:FILE; for a store of a policy leave it out and use --consumer")
	case c.Consumer == "" || len(b.brokers) == 0 || len(b.topics) == 0:
		return nil, command.UsageError("--store needs --consumer, --brokers and --topics, which no policy says")
	}
	p, _, err := c.LoadFor(b.store)
	if err != nil {
		return nil, err
	}
	p.AddReader(c.Consumer, &policy.Kafka{Brokers: b.brokers, Topics: b.topics, Group: b.group})
	return p, nil
}

// words are the flags that choose the same consumer in another command. The place of the
// database is left out, because it may hold a password.
func (b *bareGroup) words() []string {
	words := []string{"--store", "DATABASE"}
	for _, broker := range b.brokers {
		words = append(words, "--brokers", broker)
	}
	for _, topic := range b.topics {
		words = append(words, "--topics", topic)
	}
	if b.group != "" {
		words = append(words, "--group", b.group)
	}
	return words
}
