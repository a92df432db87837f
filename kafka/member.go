package kafka

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// member is who this process is in the group. A member that is replaced is
// another client: callbacks and records of the one before it count no more.
type member struct {
	// replacementDemanded is called when a new member is asked for. It must not wait.
	replacementDemanded func()

	// mu guards the rest. It is the innermost lock: who holds it takes no other.
	mu     sync.Mutex
	client *kgo.Client // nil before the first join, and while it is replaced
	closed bool
	// reasons are why a new member is to take this one's place; empty if none is.
	reasons []reason
	// replacing: the old member leaves, and the next may not join yet.
	replacing bool
	// unassigned: it has joined, or joins again, and has not been told yet what
	// it reads.
	unassigned bool
}

// current is the client that is the member; nil while there is none.
func (m *member) current() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client
}

// is reports whether a client is the member, so that what it tells counts.
func (m *member) is(client *kgo.Client) bool { return m.current() == client }

// missing reports whether a member is to join.
func (m *member) missing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client == nil && !m.closed && !m.replacing
}

// join makes the client that is the member from now on, unless the source was
// closed. Its callbacks wait for the lock before they ask whether it is the member.
func (m *member) join(options []kgo.Opt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	m.client, m.unassigned = client, true
	return nil
}

// demandReplacement asks for a new member instead of this one. It is for what should not
// happen: this source and the client disagree on what is owned, or a topic is
// another one. A new member begins at the group's offsets; while there is none,
// the next one does. It reports whether nobody had asked for this reason before.
func (m *member) demandReplacement(why string, of topicPartition) (first bool) {
	m.mu.Lock()
	first = !slices.Contains(m.reasons, reason{why, of})
	if first && m.client != nil {
		m.reasons = append(m.reasons, reason{why, of})
	}
	m.mu.Unlock()
	m.replacementDemanded()
	return first
}

// replaceDemanded reports whether the member is to be replaced because of a partition.
func (m *member) replaceDemanded(p topicPartition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reasons, func(r reason) bool { return r.about(p) })
}

// toReplace is why the member is to be replaced; empty if it is not.
func (m *member) toReplace() []reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.client == nil {
		return nil
	}
	return slices.Clone(m.reasons)
}

// retire ends the member and returns it, so that one caller alone lets it leave:
// its callbacks are ignored from here on, and the next one joins after replaced. What asked for a new member until now is done with
// it: a reason that stayed would replace the next one, too; and one that went
// before would let the source look idle meanwhile.
func (m *member) retire() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	client := m.client
	m.client, m.replacing, m.reasons = nil, true, nil
	return client
}

// replaced lets the next member join.
func (m *member) replaced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replacing = false
}

// assigned notes whether the group has told the member what it reads.
func (m *member) assigned(told bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unassigned = !told
}

// close lets no further member join. It reports whether that is new.
func (m *member) close() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.closed
	m.closed = true
	return !was
}

func (m *member) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// reading is the client that was told what it reads, and goes on; nil if there
// is none.
func (m *member) reading() *kgo.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reasons) > 0 || m.unassigned || m.closed {
		return nil
	}
	return m.client
}
