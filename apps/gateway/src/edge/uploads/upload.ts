/** A body with files in it, as an operation gets it. */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** What an operation takes beside fields. */
export interface UploadOptions {
  /** Of each file. */
  readonly maxBytes: number;
  /** Names of the fields that carry files. A name with `[]` behind it is the same. */
  readonly files: readonly string[];
  /** Those of them that need not be there. */
  readonly optional?: readonly string[];
  /** How many files there may be in all; by default one for each field. */
  readonly maxFiles?: number;
}

/** A file that came with a request. It is there until its request has been answered. */
export interface UploadedFile {
  /** Without `[]`. */
  readonly field: string;
  /** As its sender calls it, without folders; empty where it has none. Nothing is decided by it. */
  readonly filename: string;
  /** By its content; undefined where it is nothing that is known here. */
  readonly mediaType: string | undefined;
  readonly path: string;
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** A field's text, or the texts of a field whose name ends with `[]`, which stands here without it. */
export type UploadFields = Readonly<Record<string, string | readonly string[]>>;

/** The body of a request that is an upload. Its files are deleted when it is over and nobody works with them any more. */
export class Upload {
  private users = 0;
  private hasEnded = false;

  constructor(
    readonly fields: UploadFields,
    readonly files: readonly UploadedFile[],
    private readonly discard: () => void,
  ) {}

  /** Keeps the files for as long as work with them lasts, also when the request is over before. */
  async retainWhile<T>(work: () => Promise<T>): Promise<T> {
    this.users += 1;
    try {
      return await work();
    } finally {
      this.users -= 1;
      this.discardIfUnused();
    }
  }

  /** The request has been answered, or its sender has gone. */
  end(): void {
    this.hasEnded = true;
    this.discardIfUnused();
  }

  /** What makes it the same request as another: the fields, and what is in the files. */
  toJSON(): object {
    return { fields: this.fields, files: this.files.map(({ field, sha256 }) => ({ field, sha256 })) };
  }

  private discardIfUnused(): void {
    if (this.hasEnded && this.users === 0) this.discard();
  }
}

/** Hands the files of an upload to a controller; its `@Body()` is what the fields say. */
export const Uploaded = createParamDecorator((_: unknown, context: ExecutionContext): readonly UploadedFile[] => {
  const { body } = context.switchToHttp().getRequest<FastifyRequest>();
  return body instanceof Upload ? body.files : [];
});
