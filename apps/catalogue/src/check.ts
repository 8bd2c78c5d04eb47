/** Checks a catalogue for the operator: its files, its examples, and what in it has ended or ends soon. */
import { parseDataLookup } from '#application';
import { type CatalogueEnd, type DataEndpoint, listEnds, readCatalogue } from '#catalogue';
import { StartError } from '#foundation';

export interface CatalogueReport {
  /** What the catalogue contains, in one line. */
  readonly summary: string;
  /** What the operator should know, one sentence each. */
  readonly warnings: readonly string[];
  /** What the operator must change, one sentence each. */
  readonly problems: readonly string[];
}

/**
 * Reads a catalogue, and reports its ends as of a UTC day. A model that has retired is a problem unless a successor can
 * be named to its customers. With one, it may stay in the files for as long as customers still request it. An endpoint
 * that has retired may stay too, as long as another one serves its model: nothing calls it.
 * @param directory undefined for the catalogue that ships with the project
 * @throws Error if a file is invalid; StartError if a lookup rejects its own example
 */
export function checkCatalogue(directory: string | undefined, day: string): CatalogueReport {
  const catalogue = readCatalogue(directory);
  const { models, dataEndpoints, priceList } = catalogue;
  dataEndpoints.forEach(assertValidExample);
  const ends = listEnds(catalogue, day);
  const isProblem = ({ endpoint, isOver, successor }: CatalogueEnd) =>
    endpoint === undefined && isOver && successor === undefined;
  return {
    summary: `${models.length} models, ${dataEndpoints.length} lookups, price list ${priceList.version}`,
    warnings: ends.filter((end) => !isProblem(end)).map(describeEnd),
    problems: ends.filter(isProblem).map(describeEnd),
  };
}

function describeEnd({ model, endpoint, day, isOver, successor }: CatalogueEnd): string {
  const owner = endpoint === undefined ? `model "${model}"` : `endpoint "${endpoint}" of model "${model}"`;
  if (!isOver) return `${owner} retires on ${day}${endpoint === undefined ? describeSuccessor(successor) : ''}`;
  if (successor !== undefined) return `${owner} was retired on ${day}; requests for it get 410 and "${successor}"`;
  if (endpoint !== undefined) return `${owner} was retired on ${day}; other endpoints serve the model`;
  return `${owner} was retired on ${day}: name a successor that is sold, or remove the model`;
}

function describeSuccessor(successor: string | undefined): string {
  return successor === undefined ? ' and has no successor that is sold' : `; its successor is "${successor}"`;
}

/** Checks that a lookup accepts its own example, because clients copy it. */
function assertValidExample(entry: DataEndpoint): void {
  const { method, example } = entry;
  try {
    parseDataLookup(method === 'GET' ? { query: example, body: undefined } : { query: {}, body: example }, entry);
  } catch (error) {
    throw new StartError(`example of data endpoint "${entry.endpoint.model}" is rejected: ${(error as Error).message}`);
  }
}
