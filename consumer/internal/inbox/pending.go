package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Left returns the messages that are left in the inbox when a run ends because it is idle. If no message is left, the
// result is the zero value.
func (b *Inbox) Left(ctx context.Context) (semel.Unfinished, error) {
	p, err := b.Rows.Pending(ctx, b.Consumer)
	if err != nil || p.Later+p.InProgress+p.Due+p.Blocked == 0 {
		return semel.Unfinished{}, err
	}
	return semel.Unfinished{Lane: machine.InboxLane().ID, Messages: p.Later + p.InProgress + p.Due + p.Blocked, Reason: pendingText(p)}, nil
}

// pendingText returns a text with the number of waiting messages and the reasons why they wait.
func pendingText(p store.Pending) string {
	var parts []string
	if p.Later > 0 {
		next := p.Next.Round(time.Second)
		if next < time.Second {
			next = p.Next.Round(time.Millisecond)
		}
		parts = append(parts, fmt.Sprintf("%d wait for their time, the first for %v", p.Later, next))
	}
	if p.InProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d are claimed by a process that works on them, or has ended", p.InProgress))
	}
	if p.Due > 0 {
		parts = append(parts, fmt.Sprintf("%d are due", p.Due))
	}
	var all []string
	if len(parts) > 0 {
		all = append(all, strings.Join(parts, ", ")+"; whoever runs the consumer works on them")
	}
	if p.Blocked > 0 {
		all = append(all, fmt.Sprintf("%d wait for an earlier version of their streams, or until an earlier message of their keys has ended, which may be parked", p.Blocked))
	}
	return strings.Join(all, "; ")
}
