/** HAProxy in front of gateways, as the Debian package that is unpacked if missing. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type StartedProcess, startProgram } from '../../processes.ts';
import { unpackDebianPackage } from '../money/debian.ts';

const VERSION = '2.6.12-1+deb12u4';

/**
 * How long a gateway must still serve requests after it has reported that it is not ready: until HAProxy's second probe,
 * which is late on a busy host.
 */
export const DRAIN_DELAY_MS = 5_000;

/** The body has the shape of the API's errors. */
const UNAVAILABLE_BODY = JSON.stringify({
  error: { message: 'The service is temporarily unavailable; retry in a moment', type: 'server', code: 'unavailable' },
});
const UNAVAILABLE_RESPONSE = [
  'HTTP/1.0 503 Service Unavailable',
  'content-type: application/json',
  'cache-control: no-store',
  'retry-after: 2',
  `content-length: ${UNAVAILABLE_BODY.length}`,
  '',
  UNAVAILABLE_BODY,
].join('\r\n');

/** A request whose gateway accepts no connection goes to another gateway. A request that was sent is never repeated. */
function formatConfiguration(port: number, portNumbers: readonly number[], errorFile: string): string {
  const servers = portNumbers.map((portNumber, i) => `  server gateway-${i + 1} 127.0.0.1:${portNumber} check`);
  return `
global
  maxconn 4000
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  option dontlog-normal
  timeout connect 2s
  timeout http-request 30s
  timeout queue 5s
  timeout client 600s
  timeout server 600s
  timeout check 2s
  retries 3
  option redispatch 1
  errorfile 503 ${errorFile}
frontend api
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /health/ready
  http-check expect status 200
  default-server inter 1s fall 2 rise 2
${servers.join('\n')}
`;
}

export interface Haproxy {
  readonly url: string;
  /** Lines of the log about requests whose connection was closed early, by the gateway or the client. */
  listErrors(): readonly string[];
  stop(): Promise<void>;
}

/** Starts HAProxy on loopback, with the ports of the gateways. @param directory gets its configuration */
export async function startHaproxy(directory: string, port: number, portNumbers: readonly number[]): Promise<Haproxy> {
  const { bin, env } = await unpackDebianPackage('haproxy', VERSION);
  const [file, errorFile] = [path.join(directory, 'haproxy.cfg'), path.join(directory, 'unavailable.http')];
  await writeFile(errorFile, UNAVAILABLE_RESPONSE);
  await writeFile(file, formatConfiguration(port, portNumbers, errorFile));
  // The master process reports that its worker runs, on standard error.
  const command = ['sh', '-c', 'exec "$0" -W -db -f "$1" 2>&1', path.join(bin, '../sbin/haproxy'), file];
  const started: StartedProcess = await startProgram(command, env, /Loading success/);
  return {
    url: `http://127.0.0.1:${port}`,
    listErrors: () =>
      started.outputChunks
        .join('')
        .split('\n')
        .filter((line) => line.includes(' gateways/') && !line.includes(' ---- ')),
    stop: () => started.stop(),
  };
}
