package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// orphanAfter is how long the client may think it owns a lane that is lost
// here before the member is replaced: it finds out by itself with a heartbeat.
const orphanAfter = 3 * heartbeat

// A member that does not last is replaced after a pause: a topic whose deletion
// hangs would else cost the group a rebalance a second. Each pause is twice as
// long as the one before it, from the shortest to the longest; after a member
// that has lasted they begin anew.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
	lasting       = 2 * longestPause
)

// backoff is the pause between members. It is of the goroutine that replaces them.
type backoff struct {
	pause time.Duration
	// until is when the next member may be replaced.
	until time.Time
}

// over reports whether a member may be replaced now, and then begins the next pause.
func (r *backoff) over(now time.Time) bool {
	if now.Before(r.until) {
		return false
	}
	if now.Sub(r.until) > lasting {
		r.pause = 0
	}
	r.pause = min(max(shortestPause, 2*r.pause), longestPause)
	r.until = now.Add(r.pause)
	return true
}

// replaceMember lets a new member take this one's place, if somebody demands it.
func (g *group) replaceMember(now time.Time) {
	g.lanes.lose(g.lanes.findOrphans(), "its generation is over")
	why, which := g.toReplace()
	if why == "" || !g.backoff.over(now) {
		return
	}
	g.config.Logger.Warn("joining the group anew", "group", g.config.Group, "reason", why)
	g.handOver(which)
	if client := g.endMember(); client != nil { // else the source is being closed
		ctx, cancel := context.WithTimeout(g.life, askTimeout)
		defer cancel()
		_ = g.discard(ctx, client) // a member that could not leave is removed when its session ends
	}
	g.member.replaced()
	g.gate.rouse()
}

func (g *group) toReplace() (string, []*lane) {
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
