// SPDX-License-Identifier: MIT OR Apache-2.0

// Calls a method that nobody has at each target, to show what name the client gives the server.
package main

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	for _, target := range os.Args[1:] {
		options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
		// A bare path with a dialer of its own, as the kubelet has it.
		if path, bare := strings.CutPrefix(target, "passthrough:///"); bare {
			options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", path)
			}))
		}
		connection, err := grpc.NewClient(target, options...)
		if err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = connection.Invoke(ctx, "/a.B/C", nil, nil, grpc.ForceCodec(none{}))
		cancel()
		connection.Close()
	}
}

// none encodes every message as nothing.
type none struct{}

func (none) Marshal(any) ([]byte, error) { return nil, nil }
func (none) Unmarshal([]byte, any) error { return nil }
func (none) Name() string                { return "proto" }
