package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestAChosenPortIsFreeAndNoneOfOutgoingConnections(t *testing.T) {
	port, err := Choose()
	if err != nil {
		t.Fatal(err)
	}
	if port < 20000 || port >= 32000 {
		t.Errorf("the port is %d, want one from 20000 to 31999", port)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
