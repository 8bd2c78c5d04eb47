/** Says whether what an enclave shows of itself proves which program it runs, and which key that program alone has. */
export interface AttestationVerifier {
  /**
   * @param bundle the JSON of `GET /private/attestation` as it came from the gateway, which is not trusted
   * @throws AttestationError whatever is wrong with it; never another error
   */
  verify(bundle: unknown): Promise<VerifiedEnclave>;
}

/** An enclave that requests may be encrypted to. */
export interface VerifiedEnclave {
  /** X25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Nothing was proven: the sandbox's enclave, accepted under `ALLOW_UNATTESTED=1` alone. */
  readonly isSimulated: boolean;
  /** What was proven; undefined of a simulated enclave. */
  readonly evidence?: EnclaveEvidence;
}

/** What was proven of an enclave, for its user to see. */
export interface EnclaveEvidence {
  /** The processor's product line, such as `Genoa`. */
  readonly processor: string;
  /** The launch measurement, 96 hex digits: equal in the processor's report and in the signed release. */
  readonly measurement: string;
  readonly release: {
    /** The GitHub repository, such as `owner/name`. */
    readonly repository: string;
    /** Such as `refs/tags/v1.2.3`. */
    readonly ref: string;
    /** SHA-256 of what was released, 64 hex digits. */
    readonly digest: string;
  };
}

/** An enclave that proves nothing: no byte of a request is sent to it. */
export class AttestationError extends Error {
  /** @param reason in plain English, for the user of the proxy; of what the bundle says it repeats only what is harmless */
  constructor(
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`The enclave is not attested: ${reason}`, options);
    this.name = 'AttestationError';
  }
}

/**
 * What `read` returns. Readers of what a stranger wrote throw many things: each of them becomes the reason.
 * @throws AttestationError
 */
export function withAttestationError<T>(reason: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof AttestationError ? cause : new AttestationError(reason, { cause });
  }
}
