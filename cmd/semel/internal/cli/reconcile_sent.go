package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/reconcile"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// reconcile compares, and prints what it finds.
func (c *common) reconcile(ctx context.Context, r *reconciling) (err error) {
	switch {
	case r.file != "":
		return c.reconcileFile(ctx, r)
	case len(r.topics) > 0:
		return c.reconcileTopics(ctx, r)
	}
	a, of, err := c.openReconciled(ctx)
	if err != nil {
		return err
	}
	defer c.close(a)
	s := a.Stores[0]
	return c.compare(ctx, r, s, of, func(to *reconcile.Comparison, _ *findings) error {
		err := to.SentBy(ctx, func(add func(id, source string) error) error { return s.Query(ctx, r.query, idsOf(add)) })
		if err != nil {
			return fmt.Errorf("--sql: %w", err)
		}
		return nil
	})
}

// openReconciled opens the store of the consumer of the flags.
func (c *common) openReconciled(ctx context.Context) (*assembly.Assembly, *policy.Consumer, error) {
	p, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	of := p.Consumer(c.consumer)
	if of == nil {
		return nil, nil, usage("no consumer %q in %s", c.consumer, c.config)
	}
	if err := hasMarkers(p, of); err != nil {
		return nil, nil, err
	}
	a, err := c.openChecked(ctx, p, of.Store)
	return a, of, err
}

func (c *common) reconcileFile(ctx context.Context, r *reconciling) error {
	g, err := c.openSent(ctx, r.file, r.format, hasMarkers)
	if err != nil {
		return err
	}
	defer g.close()
	src := file.Stdin(g.in, file.Options{Format: g.format, Lane: "sent", Notice: func(what string) { fmt.Fprintln(c.Err, terminal.Line(what)) }})
	return c.compareSource(ctx, r, g.assembly.Stores[0], g.of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, at byte %d", d.Message.Origin.Offset)
	})
}

// reconcileTopics reads topics up to their ends as they stand now, or up to a time.
func (c *common) reconcileTopics(ctx context.Context, r *reconciling) error {
	a, of, err := c.openReconciled(ctx)
	if err != nil {
		return err
	}
	defer c.close(a)
	if s := a.Policy().Source(of.From); s == nil || s.Kafka == nil {
		return usage("--topic: consumer %s reads no topics, so that the policy names no brokers for it; give --file or --sql", of.Name)
	}
	topics, err := a.Topics(of, r.topics...)
	if err != nil {
		return failed(err)
	}
	defer topics.Close()
	lanes, err := topics.Lanes(ctx, kafka.Bound{Time: r.cut.from}, kafka.Bound{Time: r.cut.to})
	if err != nil {
		return failed(err)
	}
	c.sayLanes(r, lanes)
	src, err := topics.Source(lanes)
	if err != nil {
		return failed(err)
	}
	return c.compareSource(ctx, r, a.Stores[0], of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, in %s at offset %d", d.Lane.ID, d.Message.Origin.Offset)
	})
}

// mostLanes is how many partitions are named.
const mostLanes = 5

// sayLanes says what is read of topics.
func (c *common) sayLanes(r *reconciling, lanes []admin.ReplayLane) {
	records := int64(0)
	var parts []string
	for i, l := range lanes {
		if records += l.To - l.From; i < mostLanes {
			parts = append(parts, fmt.Sprintf("%s %d to %d", l.Lane, l.From, l.To-1))
		}
	}
	if more := len(lanes) - mostLanes; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d further partitions", more))
	}
	if len(lanes) == 0 {
		c.remark("%s: no records there", strings.Join(r.topics, ", "))
		return
	}
	c.remark("at most %d records are compared: offsets %s", records, strings.Join(parts, ", "))
}

// compareSource compares with what a source has, which names a message without an identity.
func (c *common) compareSource(ctx context.Context, r *reconciling, s *assembly.Store, of *policy.Consumer, src source.Source, place func(*source.Delivery) string) (err error) {
	defer func() { err = errors.Join(err, failed(src.Close(context.WithoutCancel(ctx)))) }()
	return c.compare(ctx, r, s, of, func(to *reconcile.Comparison, told *findings) error {
		return to.Read(ctx, src, of.Config(), func(d *source.Delivery, _ error) error {
			return told.add(reconcile.Finding{Kind: reconcile.Unknown, ID: place(d)})
		})
	})
}

// compare reads what was sent, then the effects, and tells of what does not fit.
func (c *common) compare(ctx context.Context, r *reconciling, s *assembly.Store, of *policy.Consumer, read func(*reconcile.Comparison, *findings) error) (err error) {
	name, err := s.KeptAs(ctx, of.Name)
	if err != nil {
		return failed(err)
	}
	live := c.liveLine()
	comparison := &reconcile.Comparison{Marker: s.Marker, Consumer: name, Until: time.Now().Add(-r.grace), Progress: func(read, effects int64, compared float64) {
		live.say("%s: %d identities read, %d effects, %.0f %% compared", of.Name, read, effects, 100*compared)
	}}
	if comparison.Kept, err = keptSince(ctx, s, name); err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, failed(comparison.Close())) }()
	told := &findings{limit: r.limit, List: []reconcile.Finding{}}
	err = read(comparison, told)
	if err == nil && r.effects != "" {
		comparison.WithEffects()
		if err = s.Query(ctx, r.effects, idsOf(comparison.Effect)); err != nil {
			err = fmt.Errorf("--effects: %w", err)
		}
	}
	if err == nil {
		told.Counts, err = comparison.Compare(ctx, told.add)
	}
	live.end()
	if err != nil {
		return failed(err)
	}
	return told.write(c, r)
}

// idsOf takes rows of an id, and perhaps a source.
func idsOf(add func(id, source string) error) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var id, source sql.NullString
		switch len(columns) {
		case 1:
			err = rows.Scan(&id)
		case 2:
			err = rows.Scan(&id, &source)
		default:
			return fmt.Errorf("the query returns %d columns; it must return an id and, if you like, a source", len(columns))
		}
		if err == nil && !id.Valid {
			err = errors.New("a row has no id; leave such rows out, with where … is not null")
		}
		if err != nil {
			return err
		}
		return add(id.String, source.String)
	}
}
