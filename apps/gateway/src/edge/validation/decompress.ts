import { type Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { BadRequestError, PayloadTooLargeError } from '../errors/errors.ts';

/** Decompressed size above which the compression ratio is limited, against attempts to exhaust resources. */
const MIN_DENSITY_CHECK_BYTES = 1024 * 1024;
const MAX_COMPRESSION_RATIO = 100;

/**
 * Decompresses a body. Fails with PayloadTooLargeError beyond the limit or the maximum compression ratio, and with
 * BadRequestError for invalid gzip.
 */
export function decompress(payload: Readable, limit: number): Readable {
  const unzip = createGunzip();
  let size = 0;
  const limiter = new Transform({
    transform(chunk: Buffer, _, done) {
      size += chunk.length;
      const isTooDense = size > MIN_DENSITY_CHECK_BYTES && size > unzip.bytesWritten * MAX_COMPRESSION_RATIO;
      if (size <= limit && !isTooDense) return done(null, chunk);
      stop();
      done(
        new PayloadTooLargeError(
          isTooDense
            ? 'The body is too highly compressed'
            : `The body must have at most ${limit} bytes when decompressed`,
        ),
      );
    },
  });
  const stop = () => {
    payload.unpipe(unzip);
    unzip.destroy();
    payload.resume();
  };
  limiter.on('error', () => {}); // an error may occur while no other listener is attached
  payload.once('error', (error) => limiter.destroy(error));
  unzip.once('error', () => {
    stop();
    limiter.destroy(new BadRequestError('The body is not valid gzip'));
  });
  return payload.pipe(unzip).pipe(limiter);
}
