/** A request body with files, as an operation receives it. */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** The files that an operation accepts in addition to fields. */
export interface UploadOptions {
  /** Limit of each file. */
  readonly maxBytes: number;
  /** Names of the fields that contain files. A client may append `[]` to a name. */
  readonly files: readonly string[];
  /** Fields whose files may be missing. */
  readonly optional?: readonly string[];
  /** A body without files may also be JSON. */
  readonly acceptsJson?: true;
  /** Maximum number of files in total; by default the length of `files`. */
  readonly maxFiles?: number;
}

/** A file of a request. It is deleted when the request has ended and no work with it is left. */
export interface UploadedFile {
  /** Without `[]`. */
  readonly field: string;
  /** The name that the client sent, without directories; empty if none. Untrusted: nothing may depend on it. */
  readonly filename: string;
  /** Detected from the content; undefined for an unsupported type and for an image that is not safe to decode. */
  readonly mediaType: string | undefined;
  readonly path: string;
  readonly size: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** The text of each field; an array of texts if the client appended `[]` to the name. The keys have no `[]`. */
export type UploadFields = Readonly<Record<string, string | readonly string[]>>;

/** The body of an upload. Its files are deleted when the request has ended and no work with them is left. */
export class Upload {
  private users = 0;
  private hasEnded = false;

  constructor(
    readonly fields: UploadFields,
    readonly files: readonly UploadedFile[],
    private readonly discard: () => void,
  ) {}

  /** Retains the files until `work` has ended, even if the request ends before that. */
  async retainWhile<T>(work: () => Promise<T>): Promise<T> {
    this.users += 1;
    try {
      return await work();
    } finally {
      this.users -= 1;
      this.discardIfUnused();
    }
  }

  /** Called when the response has been sent, or the client has disconnected. */
  end(): void {
    this.hasEnded = true;
    this.discardIfUnused();
  }

  /** Identifies the request, for idempotency and payments, by its fields and the content of its files. */
  toJSON(): object {
    return { fields: this.fields, files: this.files.map(({ field, sha256 }) => ({ field, sha256 })) };
  }

  private discardIfUnused(): void {
    if (this.hasEnded && this.users === 0) this.discard();
  }
}

/** Injects the files of an upload into a controller method. The `@Body()` of the method has the fields. */
export const Uploaded = createParamDecorator((_: unknown, context: ExecutionContext): readonly UploadedFile[] => {
  const { body } = context.switchToHttp().getRequest<FastifyRequest>();
  return body instanceof Upload ? body.files : [];
});
