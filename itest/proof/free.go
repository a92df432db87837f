package proof

import (
	"net"
	"net/http"
	"time"
)

// FreeAddress returns an address on this machine whose port is free.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Serve serves HTTP at a free address of this machine until end is called.
func Serve(h http.Handler) (address string, end func()) {
	l := Must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l)
	}()
	return l.Addr().String(), func() {
		_ = server.Close()
		<-over
	}
}
