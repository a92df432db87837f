// Package freeport chooses ports for servers that tests start as processes of their own.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Choose returns a TCP port of 127.0.0.1 on which nothing listens. The port is below the range from which systems take
// the ports of outgoing connections: 32768 and above on Linux. A port in that range could be taken by an outgoing
// connection before the server listens, or while the server is down.
func Choose() (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between 20000 and 32000: %w", err)
}
