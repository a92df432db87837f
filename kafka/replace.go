package kafka

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// orphanAfter is how long the client may think it owns a lane that is lost
// here before the member is replaced: it finds out by itself with a heartbeat.
const orphanAfter = 3 * heartbeat

// reason is why a member is to be replaced. One that comes back equals the one
// before it, so why tells no offsets.
type reason struct {
	why string
	// of is the partition that it is about, allOf a topic, or nothing: the member.
	of topicPartition
}

func allOf(topic string) topicPartition { return topicPartition{topic, -1} }

// about reports whether a reason is about a partition.
func (r reason) about(p topicPartition) bool { return r.of == p || r.of == allOf(p.topic) }

// A reason that comes back replaces the next member after a pause: a topic whose
// deletion hangs would else cost the group a rebalance a second. Each pause is
// twice as long as the one before it, from the shortest to the longest; where it
// stayed away for long they begin anew. Another reason does not wait for it: of
// a partition that stands still retention may take more.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
	lasting       = 2 * longestPause
)

// backoff are the pauses of reasons. It is of the goroutine that replaces members.
type backoff map[reason]delay

type delay struct {
	length time.Duration
	// until is when the reason may replace a member again.
	until time.Time
}

// over finds a reason for which the member may be replaced now. If there is one,
// pauses begin: the next member is a try for the other reasons, too.
func (b backoff) over(now time.Time, reasons []reason) (first reason, found bool) {
	i := slices.IndexFunc(reasons, func(r reason) bool { return !now.Before(b[r].until) })
	if i < 0 {
		return reason{}, false
	}
	maps.DeleteFunc(b, func(_ reason, d delay) bool { return now.Sub(d.until) > lasting })
	for _, r := range reasons {
		d := b[r]
		if !now.Before(d.until) {
			d.length = min(max(shortestPause, 2*d.length), longestPause)
		}
		d.until = now.Add(d.length)
		b[r] = d
	}
	return reasons[i], true
}

// replaceMember lets a new member take this one's place, if somebody demands it.
func (g *group) replaceMember(now time.Time) {
	stale := g.lanes.findOrphans()
	reasons, which := g.toReplace()
	first, found := g.backoff.over(now, reasons)
	if !found {
		return
	}
	g.config.Logger.Warn("joining the group anew", "group", g.config.Group, "reason", first.why)
	g.lanes.lose(stale, "its generation is over") // not before: nobody else would read them
	g.handOver(which)
	if client := g.endMember(); client != nil { // else the source is being closed
		ctx, cancel := context.WithTimeout(g.life, askTimeout)
		defer cancel()
		_ = g.discard(ctx, client) // a member that could not leave is removed when its session ends
	}
	g.member.replaced()
	g.gate.rouse()
}

func (g *group) toReplace() ([]reason, []*lane) {
	g.announcing.acquire() // so that the lanes were told of
	defer g.announcing.release()
	return g.member.toReplace(), g.lanes.all()
}

// endMember ends what a member has, also what it was given while its other
// lanes were handed over.
func (g *group) endMember() *kgo.Client {
	g.announcing.acquire()
	defer g.announcing.release()
	client := g.member.retire()
	which := g.lanes.all()
	g.lanes.lose(which, "")
	g.lanes.forgetLanes(which)
	return client
}

// leave ends the member, because the source is closed, after a last commit.
func (g *group) leave(ctx context.Context) error {
	err := g.commits.last(ctx)
	client := g.member.retire()
	g.lanes.lose(g.lanes.all(), "")
	if client == nil { // it has not joined, or is being replaced
		return err
	}
	if left := g.discard(ctx, client); left != nil {
		g.config.Logger.Warn("the group was not left and waits for this member until its session ends", "group", g.config.Group, "error", left)
	}
	return err
}

// discard lets a member leave the group, for as long as ctx allows, and ends it.
func (g *group) discard(ctx context.Context, client *kgo.Client) error {
	err := client.LeaveGroupContext(ctx)
	client.Close()
	return err
}
