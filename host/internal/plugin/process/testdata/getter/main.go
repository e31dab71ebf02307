// Command getter is a client of HTTP that measures what it gets: the time to the first byte of an
// answer, and how fast a large one arrives. Each request has a connection of its own.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// measured is what getter prints.
type measured struct {
	First      time.Duration // median
	PerSecond  float64       // bytes
	Downloaded int64
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run gets URL/first as often as is said and URL/large once. It connects to the address, or uses the
// proxy of its environment if that is "". With the URL "hold", it opens tunnels to the address, writes
// a line, and holds them until its input ends.
func run(args []string) error {
	url, address := args[0], args[1]
	times, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if url == "hold" {
		return hold(address, times)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server of the benchmark
	}
	if address != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}
	client := &http.Client{Transport: transport}
	var took []time.Duration
	for range times {
		start := time.Now()
		if _, err := get(client, url+"/first", func() { took = append(took, time.Since(start)) }); err != nil {
			return err
		}
	}
	slices.Sort(took)
	got := measured{First: took[len(took)/2]}
	start := time.Now()
	if got.Downloaded, err = get(client, url+"/large", func() { start = time.Now() }); err != nil {
		return err
	}
	got.PerSecond = float64(got.Downloaded) / time.Since(start).Seconds()
	return json.NewEncoder(os.Stdout).Encode(got)
}

// get reads an answer and calls first at its first byte.
func get(client *http.Client, url string, first func()) (int64, error) {
	answer, err := client.Get(url) //nolint:noctx // it ends with its parent
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, answer.Status)
	}
	if _, err := answer.Body.Read(make([]byte, 1)); err != nil && err != io.EOF { //nolint:errorlint // of a reader
		return 0, err
	}
	first()
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, make([]byte, 256<<10))
}

// hold opens tunnels through the proxy at the usual address.
func hold(address string, times int) error {
	var held []net.Conn
	for range times {
		conn, err := net.Dial("tcp", "127.0.0.1:3128") //nolint:noctx // it ends with its parent
		if err != nil {
			return err
		}
		held = append(held, conn)
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
		answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("tunnel %d: %+v, %w", len(held), answer, err)
		}
		fmt.Fprintln(conn, "hello")
	}
	fmt.Fprintln(os.Stdout, len(held))
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
