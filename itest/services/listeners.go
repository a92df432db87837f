package services

import (
	"fmt"
	"strings"
)

// Listener is an additional listener of each node of a Cluster, with a port of its own.
type Listener struct {
	// Name is the listener's name in upper case. Protocol is SSL, SASL_PLAINTEXT or SASL_SSL.
	Name, Protocol string
	// Settings are settings of this listener, each in the form "name=value".
	Settings []string
}

// BrokersAt returns the host and port of this listener on each node.
func (c *Cluster) BrokersAt(listener string) []string {
	var all []string
	for _, b := range c.nodes {
		port, known := b.further[listener]
		if !known {
			b.t.Fatalf("the brokers have no listener %s", listener)
		}
		all = append(all, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return all
}

// listen chooses ports for all listeners and returns their settings.
func (b *Broker) listen(further []Listener, controller int) []string {
	b.t.Helper()
	if len(further) == 0 {
		return nil
	}
	b.further = map[string]int{}
	addresses := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", b.port)
	protocols := "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
	var settings []string
	for _, l := range further {
		b.further[l.Name] = freePort(b.t)
		addresses += fmt.Sprintf(",%s://127.0.0.1:%d", l.Name, b.further[l.Name])
		protocols += fmt.Sprintf(",%s:%s", l.Name, l.Protocol)
		for _, s := range l.Settings {
			settings = append(settings, "listener.name."+strings.ToLower(l.Name)+"."+s)
		}
	}
	return append(settings, fmt.Sprintf("listeners=%s,CONTROLLER://127.0.0.1:%d", addresses, controller),
		"advertised.listeners="+addresses, "listener.security.protocol.map="+protocols)
}
