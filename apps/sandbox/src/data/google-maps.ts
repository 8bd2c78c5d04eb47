/** Google's Places (New), Solar and Aerial View: https://developers.google.com/maps/documentation */
import { type JsonObject } from '#kernel';
import { createError } from '../google/errors.ts';
import type { HttpError } from '../router.ts';
import { createAerialImage } from './aerial-image.ts';
import { generateCompany, generatePlace, generateProse, generateTime, Seed } from './generated-data.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  findNumber,
  findText,
  generateResults,
} from './vendor.ts';

const FIELD_MASK = 'x-goog-fieldmask';
const MAX_PLACES = 20;
/** Fields of the price class that Google calls Pro. Any other field, except `nextPageToken`, is more expensive. */
const PRO_FIELDS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'displayName',
  'formattedAddress',
  'location',
  'types',
  'primaryType',
  'businessStatus',
  'googleMapsUri',
]);

const GOOGLE: Pick<DataVendor, 'keys' | 'createError' | 'createKeyError'> = {
  keys: [
    { in: 'header', name: 'x-goog-api-key' },
    { in: 'query', name: 'key' },
  ],
  createError,
  createKeyError: (missing) => {
    if (missing)
      return createError(403, "Method doesn't allow unregistered callers (callers without established identity).");
    const details = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' };
    return createError(400, 'API key not valid. Please pass a valid API key.', [details]);
  },
};

export const googleMaps: DataVendor = {
  name: 'google-maps',
  ...GOOGLE,
  lookups: {
    'POST /v1/places:searchText': {
      usd: (request) => (hasExpensiveFields(request, 'places.') ? '0.08' : '0.02'),
      billsEmptyResults: true,
      execute: (request) => {
        if (!findText(request.fields, 'textQuery')) throw createError(400, 'Empty text_query.');
        const requestedCount = Math.min(findNumber(request.fields, 'pageSize') ?? MAX_PLACES, MAX_PLACES);
        return findPlaces(request, requestedCount);
      },
    },
    'POST /v1/places:searchNearby': {
      usd: (request) => (hasExpensiveFields(request, 'places.') ? '0.08' : '0.02'),
      billsEmptyResults: true,
      execute: (request) => {
        assertCircle(request.fields);
        const requestedCount = Math.min(findNumber(request.fields, 'maxResultCount') ?? MAX_PLACES, MAX_PLACES);
        return findPlaces(request, requestedCount);
      },
    },
    'GET /v1/places/{placeId}': {
      usd: (request) => (hasExpensiveFields(request, '') ? '0.05' : '0.02'),
      execute: (request) => {
        const mask = parseFieldMask(request, '');
        if (!/^[\w-]+$/.test(request.pathParameter))
          throw createError(400, `Not a valid Place ID: ${request.pathParameter}`);
        if (request.count(1) === 0) throw createError(404, 'The Place ID is no longer valid.');
        return {
          body: applyFieldMask(createGooglePlace(new Seed(request.pathParameter), request.pathParameter), mask),
          results: 1,
        };
      },
    },
  },
};

export const googleSolar: DataVendor = {
  name: 'google-solar',
  ...GOOGLE,
  lookups: {
    'GET /v1/buildingInsights:findClosest': {
      usd: '0.02',
      execute: (request) => ({ body: createBuildingInsights(request, parsePosition(request)), results: 1 }),
    },
    'GET /v1/dataLayers:get': {
      usd: '0.08',
      execute: (request) => {
        parsePosition(request);
        const radius = findNumber(request.fields, 'radiusMeters') ?? 0;
        if (radius <= 0) throw createError(400, 'radius_meters must be greater than 0.');
        return { body: createDataLayers(request), results: 1 };
      },
    },
    'GET /v1/geoTiff:get': {
      usd: '0.05',
      execute: (request) => {
        const id = findText(request.fields, 'id');
        if (!id) throw createError(400, 'id must be specified.');
        assertFound(request);
        return { body: {}, file: { type: 'image/tiff', bytes: createAerialImage(id) }, results: 1 };
      },
    },
  },
};

export const googleAerialView: DataVendor = {
  name: 'google-aerial-view',
  ...GOOGLE,
  lookups: {
    'GET /v1/videos:lookupVideo': {
      usd: '0.02',
      execute: ({ fields, ...request }) => {
        const which = findText(fields, 'videoId') ?? findText(fields, 'address');
        if (!which) throw createError(400, 'Either video_id or address must be specified.');
        assertFound({ fields, ...request });
        const uri = (kind: string) => `https://videos.example/${request.seed.formatHex(12)}/${kind}`;
        const uris = Object.fromEntries(
          ['IMAGE', 'MP4_LOW', 'MP4_HIGH'].map((kind) => [
            kind,
            { landscapeUri: uri(`${kind}/landscape`), portraitUri: uri(`${kind}/portrait`) },
          ]),
        );
        const metadata = {
          videoId: request.seed.formatHex(22),
          captureDate: generateDate(request.seed),
          duration: '40s',
        };
        return { body: { uris, state: 'ACTIVE', metadata }, results: 1 };
      },
    },
    'POST /v1/videos:renderVideo': {
      usd: '0.01',
      execute: (request) => {
        if (!findText(request.fields, 'address')) throw createError(400, 'address must be specified.');
        assertFound(request);
        return { body: { state: 'PROCESSING', metadata: { videoId: request.seed.formatHex(22) } }, results: 1 };
      },
    },
  },
};

/** Returns the requested fields without `prefix`. @throws HttpError 400 without a mask, because there is no default */
function parseFieldMask({ headers }: DataVendorRequest, prefix: string): readonly string[] {
  const mask = String(headers[FIELD_MASK] ?? '');
  if (mask === '')
    throw createError(
      400,
      "FieldMask is a required parameter. See https://cloud.google.com/apis/docs/system-parameters on how to provide it as a $fields or fields URL parameter, or as a HTTP/gRPC header 'X-Goog-FieldMask'.",
    );
  return mask.split(',').map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path));
}

function hasExpensiveFields(request: DataVendorRequest, prefix: string): boolean {
  return parseFieldMask(request, prefix).some(
    (path) => path !== 'nextPageToken' && !PRO_FIELDS.has(path.split('.')[0] ?? ''),
  );
}

function applyFieldMask(place: JsonObject, mask: readonly string[]): JsonObject {
  if (mask.includes('*')) return place;
  const names = new Set(mask.map((path) => path.split('.')[0]));
  return Object.fromEntries(Object.entries(place).filter(([name]) => names.has(name)));
}

function findPlaces(request: DataVendorRequest, requestedCount: number): DataVendorResult {
  const mask = parseFieldMask(request, 'places.');
  const count = request.count(requestedCount);
  const places = generateResults(request, count, (seed) =>
    applyFieldMask(createGooglePlace(seed, `ChIJ${seed.formatHex(23)}`), mask),
  );
  const next = mask.includes('*') || mask.includes('nextPageToken');
  const pagination = next && count >= MAX_PLACES ? { nextPageToken: request.seed.formatHex(40) } : {};
  return { body: count === 0 ? {} : { places, ...pagination }, results: count };
}

function createGooglePlace(seed: Seed, id: string): JsonObject {
  const company = generateCompany(seed);
  const place = generatePlace(seed);
  return {
    name: `places/${id}`,
    id,
    types: ['cafe', 'food', 'point_of_interest', 'establishment'],
    primaryType: 'cafe',
    displayName: { text: `The ${company.name}`, languageCode: 'en' },
    formattedAddress: place.address,
    location: { latitude: place.latitude, longitude: place.longitude },
    businessStatus: 'OPERATIONAL',
    googleMapsUri: `https://maps.example/?cid=${seed.formatDigits()}`,
    rating: 1 + (seed.getNumber(3) % 41) / 10,
    userRatingCount: seed.getNumber(4) % 2_000,
    priceLevel: 'PRICE_LEVEL_MODERATE',
    internationalPhoneNumber: company.phone,
    websiteUri: `https://${company.domain}/`,
    regularOpeningHours: { openNow: true, weekdayDescriptions: ['Monday: 9:00 AM – 5:00 PM'] },
    editorialSummary: { text: generateProse(seed, 12), languageCode: 'en' },
    reviews: [
      { name: `places/${id}/reviews/1`, rating: 4, text: { text: generateProse(seed, 20), languageCode: 'en' } },
    ],
  };
}

function assertCircle({ locationRestriction }: JsonObject): void {
  const { circle } = (locationRestriction ?? {}) as {
    readonly circle?: { readonly center?: { readonly latitude?: unknown }; readonly radius?: unknown };
  };
  if (typeof circle?.center?.latitude !== 'number' || typeof circle.radius !== 'number')
    throw createError(400, 'location_restriction.circle must be set.');
}

interface Position {
  readonly latitude: number;
  readonly longitude: number;
}

function parsePosition(request: DataVendorRequest): Position {
  const latitude = findNumber(request.fields, 'location.latitude');
  const longitude = findNumber(request.fields, 'location.longitude');
  if (latitude === undefined || longitude === undefined) throw createError(400, 'Location must be specified.');
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) throw createError(400, 'Location is out of range.');
  assertFound(request);
  return { latitude, longitude };
}

function assertFound(request: DataVendorRequest): void {
  if (request.count(1) === 0) throw notFoundError();
}

function notFoundError(): HttpError {
  return createError(404, 'Requested entity was not found.');
}

function generateDate(seed: Seed) {
  const [year = 0, month = 0, day = 0] = generateTime(seed).slice(0, 10).split('-').map(Number);
  return { year, month, day };
}

function createBuildingInsights({ seed }: DataVendorRequest, center: Position) {
  const { postcode, region } = generatePlace(seed);
  const areaMeters2 = 40 + (seed.getNumber(5) % 200);
  return {
    name: `buildings/ChIJ${seed.formatHex(23)}`,
    center,
    imageryDate: generateDate(seed),
    imageryProcessedDate: generateDate(seed),
    postalCode: postcode,
    administrativeArea: region,
    regionCode: 'XT',
    solarPotential: {
      maxArrayPanelsCount: 4 + (seed.getNumber(6) % 60),
      maxArrayAreaMeters2: areaMeters2,
      maxSunshineHoursPerYear: 900 + (seed.getNumber(7) % 1_000),
      carbonOffsetFactorKgPerMwh: 428.9,
      wholeRoofStats: { areaMeters2, sunshineQuantiles: [350, 1_200, 1_500], groundAreaMeters2: areaMeters2 * 0.8 },
      roofSegmentStats: [{ pitchDegrees: 11.3, azimuthDegrees: 269.7, center }],
      panelCapacityWatts: 400,
      panelLifetimeYears: 20,
    },
    imageryQuality: 'HIGH',
  };
}

function createDataLayers({ seed }: DataVendorRequest) {
  const url = (of: string) => `https://solar.example/v1/geoTiff:get?id=${seed.branch(of).formatHex(32)}`;
  return {
    imageryDate: generateDate(seed),
    imageryProcessedDate: generateDate(seed),
    dsmUrl: url('dsm'),
    rgbUrl: url('rgb'),
    maskUrl: url('mask'),
    annualFluxUrl: url('annual'),
    monthlyFluxUrl: url('monthly'),
    hourlyShadeUrls: Array.from({ length: 12 }, (_, month) => url(`shade-${month}`)),
    imageryQuality: 'HIGH',
  };
}
