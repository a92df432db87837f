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

	"github.com/semel-go/semel/itest/must"
)

// The time limit for Kafka. On a busy machine, three brokers need half a minute to start.
const patienceJava = 5 * time.Minute

// KafkaOptions are the options of a cluster that only one test uses.
type KafkaOptions struct {
	// Nodes is the number of brokers: 1 or 3; 0 means 1. Each broker is also a controller.
	Nodes int
	// Settings are lines of server.properties, each in the form "name=value".
	Settings []string
	// Listeners are listeners of each node, in addition to the plaintext listener.
	Listeners []Listener
}

// Cluster is a Kafka cluster that only one test uses. The ports of the cluster do not change at a restart.
type Cluster struct {
	nodes []*Broker
}

// Broker is one node of a Cluster. The methods of Broker fail the test on errors, and must not be called concurrently.
type Broker struct {
	privateServer
	in      kafkaPrograms
	further map[string]int // ports of Listeners, by the name of the listener
}

// StartKafka starts a cluster for one test. StartKafka returns when each node answers and knows the other nodes. When
// the test ends, the cluster ends and its data are removed. The cluster also ends if the test's process dies.
//
// StartKafka needs Java and Kafka's jars on this machine, and fails the test if they are missing.
func StartKafka(t testing.TB, o KafkaOptions) *Cluster {
	t.Helper()
	in := findKafka(t)
	c := &Cluster{}
	var voters []string
	controllers := make([]int, max(o.Nodes, 1))
	for n := range controllers {
		b := &Broker{privateServer: newPrivate(t, programs{root: in.root}), in: in}
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

// Brokers returns the host and port of each node.
func (c *Cluster) Brokers() []string {
	var all []string
	for _, b := range c.nodes {
		all = append(all, b.Address())
	}
	return all
}

// Node returns a node, counted from 0.
func (c *Cluster) Node(n int) *Broker { return c.nodes[n] }

// WaitComplete waits until each node answers and knows all others.
func (c *Cluster) WaitComplete() {
	for _, b := range c.nodes {
		b.t.Helper()
		b.waitMembers(len(c.nodes))
	}
}

// StartAll starts all nodes after all nodes were killed or stopped, and returns when the nodes answer. Use StartAll
// after all nodes have ended, because a single node of a cluster cannot start without the other nodes.
func (c *Cluster) StartAll() {
	for _, b := range c.nodes {
		b.t.Helper()
		b.launch()
	}
	c.WaitComplete()
}

// Start starts a node that was stopped or killed, and returns when it has joined the cluster.
// In a cluster of three, another node must be running.
func (b *Broker) Start() {
	b.t.Helper()
	b.launch()
	b.waitMembers(1)
}

// Stop stops the node in the regular way: the node hands over its partitions first.
func (b *Broker) Stop() {
	b.t.Helper()
	b.end(syscall.SIGTERM, patienceJava)
}

func (b *Broker) launch() {
	b.t.Helper()
	b.process = b.in.start(b.t, b.folder)
}

// waitMembers waits until the node reports the given number of members, including itself.
func (b *Broker) waitMembers(count int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patienceJava)
	defer cancel()
	complete := false
	_ = waitUntil(ctx, func() bool {
		complete = b.hasMembers(ctx, count)
		return complete || b.process.hasEnded()
	})
	if !complete {
		b.t.Fatalf("Kafka in %s was not ready within %s; the end of its log:\n%s", b.folder, patienceJava, logEnd(b.folder))
	}
}

func (b *Broker) hasMembers(ctx context.Context, count int) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	all, err := clusterMembers(ctx, b.Address())
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

// configure writes the node's configuration from the template that scripts/services also uses.
func (b *Broker) configure(id, controller int, voters, settings []string) {
	b.t.Helper()
	count := len(voters)
	text := strings.NewReplacer("@ID@", fmt.Sprint(id), "@VOTERS@", strings.Join(voters, ","), "@PORT@", fmt.Sprint(b.port),
		"@CONTROLLER@", fmt.Sprint(controller), "@DATA@", b.data(), "@FACTOR@", fmt.Sprint(count), "@ISR@", fmt.Sprint((count+1)/2)).
		Replace(serverProperties) + strings.Join(settings, "\n") + "\n"
	must.OK(b.t, os.WriteFile(filepath.Join(b.folder, "server.properties"), []byte(text), 0o644))
}
