/** The address of sound alone: a port of its own, at which the paths below `/api/v1/audio` are served, and nothing else. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { type ConnectionGuard, SERVER_TIMEOUTS, StartError } from '#foundation';
import { registerUnsupportedRequestHandlers, rejectMalformedRequest } from '../../edge/errors/malformed-requests.ts';

const AUDIO_PATH_PREFIX = '/api/v1/audio/';

interface ListenOptions {
  readonly host: string;
  readonly connections: ConnectionGuard;
}

export class AudioServer {
  private server: Server | undefined;
  private readonly received = new WeakSet<IncomingMessage>();

  /** Refuses what comes there and is not about sound, and ends with the main listener. For routes that are declared from now on. */
  restrictPaths(fastify: FastifyInstance): void {
    fastify.addHook('onRequest', ({ raw, url }, _, done) => {
      const isOtherPath = this.received.has(raw) && !url.startsWith(AUDIO_PATH_PREFIX);
      done(
        isOtherPath
          ? (new NotFoundException(`Only ${AUDIO_PATH_PREFIX} is served at this address`) as Error)
          : undefined,
      );
    });
    // With the main listener: what runs goes on until it has ended or is cut short.
    fastify.addHook('preClose', (done) => {
      this.server?.close();
      done();
    });
  }

  /**
   * Serves with all that the main listener has: the same limits, hooks and routes.
   * @returns its address up to and including `/api/v1`
   * @throws StartError
   */
  async listen(fastify: FastifyInstance, port: number, { host, connections }: ListenOptions): Promise<string> {
    const { requestTimeout, keepAliveTimeout } = fastify.server;
    const server = createServer({ requestTimeout, keepAliveTimeout, ...SERVER_TIMEOUTS, requireHostHeader: false });
    server.on('request', (request, response) => {
      this.received.add(request);
      fastify.routing(request, response);
    });
    connections.guard(server);
    server.on('clientError', rejectMalformedRequest as never);
    registerUnsupportedRequestHandlers(server);
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
        const portInUseMessage = `Port ${port} is already in use; stop what listens there or set AUDIO_PORT.`;
        reject(
          new StartError(code === 'EADDRINUSE' ? portInUseMessage : `The API cannot listen for sound: ${message}.`),
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
