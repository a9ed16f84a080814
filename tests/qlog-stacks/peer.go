// SPDX-License-Identifier: MIT OR Apache-2.0

// A client or server of quic-go or x/net/quic: the server sends BYTES on the stream that the client opens.
// The server's application, or the client that reads, pauses after AT bytes for PAUSE_S, and says so in
// FOLDER/truth.
//
//	peer quic-go|xnet client|server PORT FOLDER BYTES AT PAUSE_S
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"time"

	quicgo "github.com/quic-go/quic-go"
	qlog "github.com/quic-go/quic-go/qlog"
	xnet "golang.org/x/net/quic"
	xnetlog "golang.org/x/net/quic/qlog"
)

const (
	piece  = 8192
	window = 65536 // Of a client that pauses.
)

var (
	folder string
	total  int
	at     int
	pauseS float64
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// Pauses once, if it is due, and writes the truth.
func pause(done int, what string) {
	if pauseS == 0 || done < at {
		return
	}
	if what == "application" && at == 0 {
		what = "response"
	}
	now := func() float64 { return float64(time.Now().UnixMicro()) / 1e6 }
	begin := now()
	time.Sleep(time.Duration(pauseS * float64(time.Second)))
	pauseS = 0
	truth := must(os.OpenFile(folder+"/truth", os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644))
	defer truth.Close()
	fmt.Fprintf(truth, "{\"what\": %q, \"begin_s\": %f, \"end_s\": %f}\n", what, begin, now())
}

func answer(stream io.ReadWriter, flush func()) {
	must(io.ReadAll(stream))
	for sent := 0; sent < total; sent += piece {
		pause(sent, "application")
		must(stream.Write(make([]byte, min(piece, total-sent))))
		flush()
	}
}

func read(stream io.Reader) {
	buffer := make([]byte, piece)
	for received := 0; ; {
		n, err := stream.Read(buffer)
		received += n
		if err == io.EOF && received == total {
			return
		} else if err != nil {
			log.Fatal(received, " bytes: ", err)
		}
		pause(received, "reader")
	}
}

func main() {
	stack, isServer, address := os.Args[1], os.Args[2] == "server", "127.0.0.1:"+os.Args[3]
	folder = os.Args[4]
	total = must(strconv.Atoi(os.Args[5]))
	at = must(strconv.Atoi(os.Args[6]))
	pauseS = must(strconv.ParseFloat(os.Args[7], 64))
	logs := folder + "/" + os.Args[2]
	os.Setenv("QLOGDIR", logs)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(folder + "/../cert.pem")))
	own := must(tls.LoadX509KeyPair(folder+"/../cert.pem", folder+"/../key.pem"))
	security := &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: roots, ServerName: "localhost",
		NextProtos: []string{"corpus"}, MinVersion: tls.VersionTLS13,
	}
	// A log is whole when its connection has been closed for some round trips.
	defer time.Sleep(time.Second)
	context := context.Background()
	if stack == "quic-go" {
		config := &quicgo.Config{Tracer: qlog.DefaultConnectionTracer}
		if isServer {
			connection := must(must(quicgo.ListenAddr(address, security, config)).Accept(context))
			stream := must(connection.AcceptStream(context))
			answer(stream, func() {})
			stream.Close()
			<-connection.Context().Done()
			return
		}
		if pauseS > 0 {
			config.InitialStreamReceiveWindow, config.MaxStreamReceiveWindow = window, window
		}
		connection := must(quicgo.DialAddr(context, address, security, config))
		stream := must(connection.OpenStreamSync(context))
		must(stream.Write([]byte("get")))
		stream.Close()
		read(stream)
		connection.CloseWithError(0, "")
		return
	}
	handler := xnetlog.NewJSONHandler(xnetlog.HandlerOptions{Level: slog.LevelDebug - 4, Dir: logs})
	// What it has not sent yet lies in a buffer, and is sent in the application's pauses.
	config := &xnet.Config{TLSConfig: security, QLogLogger: slog.New(handler), MaxStreamWriteBufferSize: 2 * piece}
	if isServer {
		connection := must(must(xnet.Listen("udp", address, config)).Accept(context))
		stream := must(connection.AcceptStream(context))
		answer(stream, func() { stream.Flush() })
		stream.CloseWrite()
		connection.Wait(context)
		return
	}
	if pauseS > 0 {
		config.MaxStreamReadBufferSize = window
	}
	endpoint := must(xnet.Listen("udp", "127.0.0.1:0", nil))
	connection := must(endpoint.Dial(context, "udp", address, config))
	stream := must(connection.NewStream(context))
	must(stream.Write([]byte("get")))
	stream.CloseWrite()
	read(stream)
	connection.Close()
}
