/** A separate port for audio. It serves only the paths below `/api/v1/audio`. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { type ConnectionGuard, SERVER_TIMEOUTS, StartError } from '#foundation';
import type { MalformedRequestHandlers } from '../../edge/errors/malformed-requests.ts';

const AUDIO_PATH_PREFIX = '/api/v1/audio/';

interface ListenOptions {
  readonly host: string;
  readonly connections: ConnectionGuard;
  readonly malformed: MalformedRequestHandlers;
}

export class AudioServer {
  private server: Server | undefined;
  private readonly received = new WeakSet<IncomingMessage>();

  /**
   * Rejects paths outside `AUDIO_PATH_PREFIX` on the audio port, for routes that are declared after this call. Closes
   * the port together with the main listener.
   */
  restrictPaths(fastify: FastifyInstance): void {
    fastify.addHook('onRequest', ({ raw, url }, _, done) => {
      const isOtherPath = this.received.has(raw) && !url.startsWith(AUDIO_PATH_PREFIX);
      done(
        isOtherPath
          ? (new NotFoundException(`Only paths below ${AUDIO_PATH_PREFIX} are served on this port`) as Error)
          : undefined,
      );
    });
    // `close` only ends listening: requests in progress continue until they end or are aborted.
    fastify.addHook('preClose', (done) => {
      this.server?.close();
      done();
    });
  }

  /**
   * Serves requests with the limits, hooks and routes of the main listener.
   * @returns the URL of the port, up to and including `/api/v1`
   * @throws StartError if the port cannot be opened
   */
  async listen(
    fastify: FastifyInstance,
    port: number,
    { host, connections, malformed }: ListenOptions,
  ): Promise<string> {
    const { requestTimeout, keepAliveTimeout } = fastify.server;
    const server = createServer({ requestTimeout, keepAliveTimeout, ...SERVER_TIMEOUTS, requireHostHeader: false });
    server.on('request', (request, response) => {
      this.received.add(request);
      fastify.routing(request, response);
    });
    connections.guard(server);
    server.on('clientError', malformed.handleClientError as never);
    malformed.register(server);
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
        const portInUseMessage = `Port ${port} is already in use; stop the process that uses it, or set AUDIO_PORT.`;
        reject(
          new StartError(code === 'EADDRINUSE' ? portInUseMessage : `The audio port cannot be opened: ${message}.`),
        );
      });
      server.listen(port, host, resolve);
    });
    const { address, port: actualPort, family } = server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}/api/v1`;
  }

  async close(): Promise<void> {
    this.server?.close();
    this.server?.closeAllConnections();
  }
}
