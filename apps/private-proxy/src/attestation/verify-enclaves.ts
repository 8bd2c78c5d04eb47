import { type AttestationVerifier, NotAttested } from './attestation-verifier.ts';
import { bundleIn } from './bundle.ts';
import { SIMULATED, simulatedEnclave } from './simulated.ts';

export interface EnclaveTrust {
  /** The GitHub repository whose releases are trusted, such as `owner/name`. */
  readonly repository: string;
  /** Accepts enclaves that say themselves that they prove nothing (`ALLOW_UNATTESTED`). All others are checked as ever. */
  readonly allowUnattested: boolean;
}

/** Checks each bundle by the format of its report. What is trusted is in this program and in `trust`, never in a bundle. */
export function enclaveVerifier({ allowUnattested }: EnclaveTrust): AttestationVerifier {
  return {
    async verify(value) {
      try {
        const bundle = bundleIn(value);
        if (bundle.report.format !== SIMULATED) throw new NotAttested('the format of its report is not known');
        if (!allowUnattested) throw new NotAttested('it is simulated and proves nothing');
        return simulatedEnclave(bundle);
      } catch (error) {
        if (error instanceof NotAttested) throw error;
        throw new NotAttested('what it shows of itself cannot be read', { cause: error });
      }
    },
  };
}
