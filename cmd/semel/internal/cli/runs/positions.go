package runs

import (
	"context"
	"fmt"
	"slices"

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

// groupConsumer is a consumer with a consumer group, together with the positions of its partitions.
type groupConsumer struct {
	consumer   *policy.Consumer
	recovery   *kafka.Recovery
	partitions []operate.PositionView
}

// withGroups calls the function work with the chosen consumers that have consumer groups.
func withGroups(ctx context.Context, c *command.CLI, bare *groupFlags, work func(*assembly.Assembly, []groupConsumer) error) error {
	p, err := bare.load(c)
	if err != nil {
		return err
	}
	if c.Consumer != "" && p.Consumer(c.Consumer) == nil {
		return c.NoConsumer(p, c.Consumer)
	}
	store := bare.store
	if policy.IsPlace(store) {
		store = ""
	}
	if c.Consumer != "" {
		store = p.Consumer(c.Consumer).Store
	}
	a, err := c.OpenChecked(ctx, p, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	all, err := groups(ctx, c, a, p, store)
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

func groups(ctx context.Context, c *command.CLI, a *assembly.Assembly, p *policy.Policy, store string) (all []groupConsumer, err error) {
	for _, consumer := range p.Consumers {
		if c.Consumer != "" && consumer.Name != c.Consumer || store != "" && consumer.Store != store {
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
		g := groupConsumer{consumer: consumer, recovery: recovery}
		g.partitions, err = operate.Positions(ctx, consumer.Name, p.Source(consumer.From).Kafka.GroupOf(consumer), recovery)
		if all = append(all, g); err != nil {
			return all, fmt.Errorf("consumer %s: %w", consumer.Name, err)
		}
	}
	return all, nil
}

func positionsPlan(c *command.CLI) *cobra.Command {
	l, bare := &command.Listing{}, &groupFlags{}
	cmd := &cobra.Command{
		Use:   "plan [NAME]",
		Short: "Show positions and what a reset would change",
		Long: `Show the position of each partition in the store, the offset of the group, and
the start and end of the log. The command changes nothing, and consumers may run
meanwhile.

Exit code 4, a group is ahead of its store:

  behind   the store lost what it had: it was restored, or failed over
  ahead    a person set the group's offset, or an older release committed it

Exit code 0:

  level      the store has everything that the group counts as done
  unknown    the store has no position of the partition yet
  not_begun  the group has no offset`,
		Args: oneConsumer(c),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return withGroups(cmd.Context(), c, bare, func(_ *assembly.Assembly, all []groupConsumer) error { return plan(c, all, bare, l) })
		},
	}
	l.Add(c, cmd, 0, "partitions")
	bare.add(cmd)
	cmd.ValidArgsFunction = c.ConsumerWord
	return c.WithConfig(cmd)
}

// oneConsumer stores the optional argument, the name of a consumer, in c.Consumer.
func oneConsumer(c *command.CLI) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return command.UsageError("name one consumer, or none for all of the policy")
		case len(args) == 1 && args[0] == "":
			return command.UsageError("the name is empty, which would choose all; leave it out if that is meant")
		case len(args) == 1:
			c.Consumer = args[0]
		}
		return nil
	}
}

// plan prints the partitions to standard output. To standard error, plan prints the commands that correct
// the offsets.
func plan(c *command.CLI, all []groupConsumer, bare *groupFlags, l *command.Listing) error {
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

// remedy returns what to do about partitions whose group offset is ahead of the store. The parameter ahead is
// the number of partitions that are ahead, and byPerson is the number of partitions among them whose offset a
// person has set.
func remedy(c *command.CLI, bare *groupFlags, ahead, byPerson int) string {
	line := resetLine(c, bare)
	switch byPerson {
	case 0:
		return "stop the consumers, then: " + line
	case ahead:
		return fmt.Sprintf("a person, or an older release, has set %s so: if that was a mistake, stop the consumers, then: %s --ahead", map[bool]string{true: "it", false: "them"}[ahead == 1], line)
	}
	return fmt.Sprintf("stop the consumers, then: %s; of them %d set so by a person, or an older release: --ahead sets those back, too", line, byPerson)
}

// resetLine returns the command line that resets consumer groups.
func resetLine(c *command.CLI, bare *groupFlags) string {
	words := []string{"consumers", "positions", "reset"}
	if c.Consumer != "" {
		words = append(words, c.Consumer)
	} else {
		words = append(words, "--all")
	}
	return c.Suggest(slices.Concat(words, bare.words(), []string{"--because", "restored from a backup"})...)
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

// groupFlags has flags that describe a Kafka consumer without a policy, for Go programs.
type groupFlags struct {
	store, group    string
	brokers, topics []string
}

func (b *groupFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	command.StoreFlag(cmd, &b.store)
	flags.StringSliceVar(&b.brokers, "brokers", nil, "without a policy: brokers of Kafka")
	flags.StringSliceVar(&b.topics, "topics", nil, "without a policy: the topics")
	flags.StringVar(&b.group, "group", "", "without a policy: the group (default: NAME)")
	command.RefuseEmpty(cmd, "store", "brokers", "topics", "group")
}

// load returns the policy. If --store names a database, load returns a policy that is made from the flags.
func (b *groupFlags) load(c *command.CLI) (*policy.Policy, error) {
	if !policy.IsPlace(b.store) {
		if len(b.brokers) > 0 || len(b.topics) > 0 || b.group != "" {
			return nil, command.UsageError("--brokers, --topics and --group need --store with a database, as postgres://… or sqlite:FILE; a policy says them for its consumers")
		}
		return c.Load()
	}
	if c.Consumer == "" || len(b.brokers) == 0 || len(b.topics) == 0 {
		return nil, command.UsageError("without a policy, --store needs the name of the consumer, --brokers and --topics")
	}
	p, _, err := c.LoadFor(b.store)
	if err != nil {
		return nil, err
	}
	p.AddReader(c.Consumer, &policy.Kafka{Brokers: b.brokers, Topics: b.topics, Group: b.group})
	return p, nil
}

// words returns the flags that choose the same group in another command.
func (b *groupFlags) words() (words []string) {
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
