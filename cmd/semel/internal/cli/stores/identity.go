package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// IdentityCommand returns the command group `semel consumers identity`.
func IdentityCommand(c *command.CLI) *cobra.Command {
	return command.Group("identity", "Show and retire identities", identityList(c), identityRetire(c), identityRelease(c))
}

// derivationView shows the recorded selectors with which a consumer found ids.
type derivationView struct {
	Store      string    `json:"store"`
	Consumer   string    `json:"consumer"`
	Generation int64     `json:"generation"`
	Derivation string    `json:"derivation"`
	First      time.Time `json:"first"`
	Retired    bool      `json:"retired"`
	Owner      string    `json:"owner,omitempty"`
}

// withDerivations calls the function work with the chosen stores and with the stored name of the consumer's
// active generation.
func withDerivations(c *command.CLI, cmd *cobra.Command, store, consumer string, work func(ctx context.Context, s *assembly.Store, kept string) error) error {
	ctx := cmd.Context()
	a, err := c.OpenBoxes(ctx, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	kept, _, err := command.ActiveNameOf(ctx, a.Stores, consumer)
	if err != nil {
		return err
	}
	for _, s := range a.Stores {
		if err := work(ctx, s, kept); err != nil {
			return err
		}
	}
	return nil
}

func identityFlags(c *command.CLI, cmd *cobra.Command, store *string) *cobra.Command {
	command.StoreFlag(cmd, store)
	command.RefuseEmpty(cmd, "store")
	return c.WithConfig(cmd)
}

func identityList(c *command.CLI) *cobra.Command {
	var store string
	l := &command.Listing{}
	cmd := &cobra.Command{
		Use: "ls", Short: "List the identities of consumers", Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			all := []derivationView{}
			err := withDerivations(c, cmd, store, c.Consumer, func(ctx context.Context, s *assembly.Store, kept string) error {
				d := s.Derivations()
				found, err := d.Derivations(ctx, kept)
				for _, one := range found {
					owner := ""
					if err == nil {
						owner, err = d.Owner(ctx, one.Consumer)
					}
					all = append(all, derivationView{s.Name(), one.Consumer, one.Generation, one.Text, one.First, one.Retired, owner})
				}
				return command.Failed(err)
			})
			if err != nil {
				return err
			}
			return printDerivations(c, all, l)
		},
	}
	l.Add(c, cmd, 0, "derivations")
	return identityFlags(c, c.WithConsumer(cmd, "only this consumer"), &store)
}

func printDerivations(c *command.CLI, all []derivationView, l *command.Listing) error {
	shown := all
	if l.Full(len(all)) {
		shown = all[:l.Limit]
	}
	return command.PrintList(c, l, "derivations", "derivation", shown, len(all), derivationColumns)
}

func derivationColumns(all []derivationView, wide bool) []output.Column[derivationView] {
	type view = derivationView
	owned := func(d view) bool { return d.Owner != "" }
	return []output.Column[view]{
		output.Text("STORE", func(d view) string { return d.Store }).IfVaried(),
		output.Flexible("CONSUMER", func(d view) string { return d.Consumer }),
		output.Number("GENERATION", func(d view) int64 { return d.Generation }),
		output.Text("SINCE", func(d view) string { return output.Moment(d.First) }),
		output.Text("STATE", view.state),
		output.Flexible("IDENTITY", func(d view) string { return d.Derivation }),
		output.Flexible("OWNER", func(d view) string { return d.Owner }).If(wide && slices.ContainsFunc(all, owned)),
	}
}

func (d derivationView) state() string {
	if d.Retired {
		return "retired"
	}
	return "live"
}

// identityAct is a command that changes the recorded selectors of a consumer.
type identityAct struct {
	store  string
	dryRun bool
	act    store.Act
}

func (o *identityAct) flags(c *command.CLI, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = c.ConsumerWord
	command.DryRunFlag(cmd, &o.dryRun)
	command.RecordFlags(cmd, &o.act.Who, &o.act.Why)
	return identityFlags(c, cmd, &o.store)
}

// begin checks the arguments and flags of the command.
func (o *identityAct) begin(args []string) error {
	if len(args) != 1 {
		return command.UsageError("name one consumer")
	}
	return command.CheckRecord(&o.act.Who, o.act.Why, o.dryRun)
}

// printIdentityAct prints the change. In a dry run, the printed text says what would change.
func printIdentityAct(c *command.CLI, o *identityAct, consumer, what string) error {
	if c.JSON {
		return c.WriteJSON(struct {
			Verb     string `json:"verb"`
			DryRun   bool   `json:"dry_run"`
			Consumer string `json:"consumer"`
			What     string `json:"what"`
		}{o.act.Verb, o.dryRun, consumer, what})
	}
	done := "done"
	if o.dryRun {
		done = "would be done"
	}
	_, err := fmt.Fprintf(c.Out, "%s: %s %s: %s\n", legible.Printable(consumer), o.act.Verb, legible.Printable(what), done)
	return err
}

func identityRetire(c *command.CLI) *cobra.Command {
	o := &identityAct{act: store.Act{Verb: "retire"}}
	generation, undo := int64(-1), false
	cmd := &cobra.Command{
		Use:   "retire NAME --generation N --because WHY",
		Short: "Retire a previous identity",
		Long: `Retire a previous identity, so that you can remove identity.previous from the
policy. First make sure that no process with the old policy runs, and that no
message that it processed can be delivered again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.begin(args); err != nil {
				return err
			}
			if generation < 0 {
				return command.UsageError("--generation is missing; semel consumers identity ls shows them")
			}
			if undo {
				o.act.Verb = "unretire"
			}
			return changeIdentity(c, cmd, o, args[0], fmt.Sprintf("generation %d", generation), func(ctx context.Context, d admin.Derivations, consumer string) (func() error, error) {
				all, err := d.Derivations(ctx, consumer)
				live := slices.DeleteFunc(slices.Clone(all), func(one admin.Derivation) bool { return one.Retired })
				if !undo && len(live) == 1 && live[0].Generation == generation {
					return nil, fmt.Errorf("generation %d of consumer %s is its only one, by which its processes find identities: nothing else could start; what is retired is a former one", generation, consumer)
				}
				for _, one := range all {
					if one.Generation == generation && one.Retired == undo {
						return func() error { return d.RetireDerivation(ctx, consumer, generation, !undo, o.act) }, nil
					}
				}
				return nil, err
			})
		},
	}
	cmd.Flags().Int64Var(&generation, "generation", -1, "the generation to retire")
	cmd.Flags().BoolVar(&undo, "undo", false, "undo the retirement")
	return o.flags(c, cmd)
}

func identityRelease(c *command.CLI) *cobra.Command {
	o := &identityAct{act: store.Act{Verb: "release"}}
	cmd := &cobra.Command{
		Use:   "release NAME --because TEXT",
		Short: "Release a consumer's name for other handlers",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.begin(args); err != nil {
				return err
			}
			return changeIdentity(c, cmd, o, args[0], "the name", func(ctx context.Context, d admin.Derivations, consumer string) (func() error, error) {
				owner, err := d.Owner(ctx, consumer)
				if err != nil || owner == "" {
					return nil, err
				}
				return func() error {
					set, err := d.SetOwner(ctx, consumer, owner, "")
					if err == nil && !set {
						err = semel.ErrChanged
					}
					return err
				}, nil
			})
		},
	}
	return o.flags(c, cmd)
}

// errNothing means that no store has a record that the command could change.
var errNothing = errors.New("no store has that; semel consumers identity ls shows what there is")

// changeIdentity changes the record in the only store that has the record. The function find returns the
// change, or nil if a store does not have the record.
func changeIdentity(c *command.CLI, cmd *cobra.Command, o *identityAct, consumer, what string, find func(ctx context.Context, d admin.Derivations, kept string) (func() error, error)) error {
	found := 0
	err := withDerivations(c, cmd, o.store, consumer, func(ctx context.Context, s *assembly.Store, kept string) error {
		act, err := find(ctx, s.Derivations(), kept)
		if act == nil || err != nil {
			return command.Failed(err)
		}
		if found++; found > 1 {
			return command.UsageError("several stores have consumer %s; name one with --store", consumer)
		}
		if !o.dryRun {
			o.act.Why = fmt.Sprintf("consumer %s, %s: %s", kept, what, o.act.Why)
			if err := act(); err != nil {
				return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
			}
			if o.act.Verb == "release" {
				if err := s.Record(ctx, o.act); err != nil {
					return command.Failed(err)
				}
			}
		}
		return printIdentityAct(c, o, kept, what)
	})
	if err == nil && found == 0 {
		err = command.Failed(fmt.Errorf("%s of consumer %s: %w", what, consumer, errNothing))
	}
	return err
}
