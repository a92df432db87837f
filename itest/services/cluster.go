package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patienceJava is patience for Kafka: on a busy machine, three of them take
// half a minute to start.
const patienceJava = 5 * time.Minute

// KafkaOptions of a private cluster.
type KafkaOptions struct {
	// Nodes are brokers that are also controllers: 1 if 0, or 3.
	Nodes int
	// Settings are put into each server.properties, as "name=value" each.
	Settings []string
	// Listeners are those of each node beside the plain one.
	Listeners []Listener
}

// Cluster is a private Kafka cluster. Its ports stay the same for its whole
// life, through every restart.
type Cluster struct {
	nodes []*Broker
}

// Broker is one node of a private cluster. Its methods fail the test if they
// can't do what they say. They are not for use from several goroutines at once.
type Broker struct {
	private
	in      kafkaPrograms
	further map[string]int // ports of Listeners, by name
}

// StartKafka starts a cluster for this test alone and returns when each node
// answers and knows the others. It ends and its data are removed at the test's
// end; it also ends if the test's process dies.
//
// It needs Java and Kafka's jars on this machine and fails the test without.
func StartKafka(t testing.TB, o KafkaOptions) *Cluster {
	t.Helper()
	in := findKafka(t)
	c := &Cluster{}
	var voters []string
	controllers := make([]int, max(o.Nodes, 1))
	for n := range controllers {
		b := &Broker{private: newPrivate(t, programs{root: in.root}), in: in}
		c.nodes = append(c.nodes, b)
		t.Cleanup(b.remove)
		controllers[n] = freePort(t)
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", n+1, controllers[n]))
	}
	for n, b := range c.nodes {
		b.in.copyFormatted(t, b.data(), n+1)
		b.configure(n+1, controllers[n], voters, append(b.listen(o.Listeners, controllers[n]), o.Settings...))
	}
	for _, b := range c.nodes {
		b.launch()
	}
	c.WaitComplete()
	return c
}

// Brokers are host and port of each node.
func (c *Cluster) Brokers() []string {
	var all []string
	for _, b := range c.nodes {
		all = append(all, b.Address())
	}
	return all
}

// Node returns a node; they are counted from 0.
func (c *Cluster) Node(n int) *Broker { return c.nodes[n] }

// WaitComplete returns when each node answers and knows all the others.
func (c *Cluster) WaitComplete() {
	for _, b := range c.nodes {
		b.t.Helper()
		b.waitMembers(len(c.nodes))
	}
}

// StartAll starts all nodes after all were killed or stopped, and returns when
// they answer: none can alone.
func (c *Cluster) StartAll() {
	for _, b := range c.nodes {
		b.t.Helper()
		b.launch()
	}
	c.WaitComplete()
}

// Start starts a node that was stopped or killed, and returns when it takes
// part again. Of three nodes, another one must run.
func (b *Broker) Start() {
	b.t.Helper()
	b.launch()
	b.waitMembers(1)
}

// Stop ends the node as an operator does: it hands its partitions over first.
func (b *Broker) Stop() {
	b.t.Helper()
	b.end(syscall.SIGTERM, patienceJava)
}

func (b *Broker) launch() {
	b.t.Helper()
	b.process = b.in.start(b.t, b.folder)
}

// waitMembers waits until the node counts itself and so many in all.
func (b *Broker) waitMembers(count int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patienceJava)
	defer cancel()
	complete := false
	_ = until(ctx, func() bool {
		complete = b.knows(ctx, count)
		return complete || b.process.ended()
	})
	if !complete {
		b.t.Fatalf("Kafka in %s did not get ready within %s; the end of its log:\n%s", b.folder, patienceJava, logEnd(b.folder))
	}
}

func (b *Broker) knows(ctx context.Context, count int) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	all, err := members(ctx, b.Address())
	if err != nil || len(all) < count {
		return false
	}
	for _, m := range all {
		if int(m.Port) == b.port {
			return true
		}
	}
	return false
}

// configure fills in the file that scripts/services also uses.
func (b *Broker) configure(id, controller int, voters, settings []string) {
	b.t.Helper()
	count := len(voters)
	text := strings.NewReplacer("@ID@", fmt.Sprint(id), "@VOTERS@", strings.Join(voters, ","), "@PORT@", fmt.Sprint(b.port),
		"@CONTROLLER@", fmt.Sprint(controller), "@DATA@", b.data(), "@FACTOR@", fmt.Sprint(count), "@ISR@", fmt.Sprint((count+1)/2)).
		Replace(serverProperties) + strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(b.folder, "server.properties"), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}
