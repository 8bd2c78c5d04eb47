/** Verifies the evidence of an enclave: which software it runs, and which key only that software holds. */
export interface AttestationVerifier {
  /**
   * @param bundle the JSON of `GET /private/attestation`, as the untrusted gateway returned it
   * @throws AttestationError for every problem; never another error
   */
  verify(bundle: unknown): Promise<VerifiedEnclave>;
}

/** An enclave that requests may be encrypted for. */
export interface VerifiedEnclave {
  /** X25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** True for an enclave without evidence, such as the sandbox's. Accepted only with `ALLOW_UNATTESTED=1`. */
  readonly isSimulated: boolean;
  /** Undefined for a simulated enclave. */
  readonly evidence?: EnclaveEvidence;
}

/** What was verified about an enclave, for display to the user. */
export interface EnclaveEvidence {
  /** Product name of the processor, such as `EPYC 9004 (Genoa)`. */
  readonly processor: string;
  /** Launch measurement, 96 hex digits. The processor's report and the signed release have the same one. */
  readonly measurement: string;
  readonly release: {
    /** GitHub repository, such as `owner/name`. */
    readonly repository: string;
    /** Such as `refs/tags/v1.2.3`. */
    readonly ref: string;
    /** SHA-256 of the released file, 64 hex digits. */
    readonly digest: string;
  };
}

/** The evidence of an enclave is missing or invalid. Nothing of a request may be sent to such an enclave. */
export class AttestationError extends Error {
  /** @param reason for the user of the proxy, in plain English; quotes only harmless parts of the bundle */
  constructor(
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`The enclave is not attested: ${reason}`, options);
    this.name = 'AttestationError';
  }
}

/**
 * Returns the result of `read`. Parsers of untrusted data throw many types of errors.
 * @throws AttestationError instead of any other error of `read`, with this reason
 */
export function withAttestationError<T>(reason: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof AttestationError ? cause : new AttestationError(reason, { cause });
  }
}
