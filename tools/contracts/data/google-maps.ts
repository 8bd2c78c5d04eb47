/**
 * Google's Places (New), Solar and Aerial View, by their references:
 * https://developers.google.com/maps/documentation/places/web-service/reference/rest/v1/places,
 * https://developers.google.com/maps/documentation/solar/reference/rest and
 * https://developers.google.com/maps/documentation/aerial-view/reference/rest.
 * Of a place, only the fields that the sandbox sends are here.
 */
import type { GoogleError } from '../google.ts';

interface LatLng {
  latitude: number;
  longitude: number;
}

interface Circle {
  center: LatLng;
  radius: number;
}

interface Rectangle {
  low: LatLng;
  high: LatLng;
}

interface LocalizedText {
  text: string;
  languageCode?: string;
}

interface LanguageOptions {
  languageCode?: string;
  regionCode?: string;
}

interface SearchTextRequest extends LanguageOptions {
  textQuery: string;
  pageSize?: number;
  pageToken?: string;
  maxResultCount?: number;
  locationBias?: { circle?: Circle; rectangle?: Rectangle };
  locationRestriction?: { rectangle?: Rectangle };
  includedType?: string;
  strictTypeFiltering?: boolean;
  minRating?: number;
  openNow?: boolean;
  priceLevels?: string[];
  rankPreference?: 'DISTANCE' | 'RELEVANCE';
  includePureServiceAreaBusinesses?: boolean;
}

interface SearchNearbyRequest extends LanguageOptions {
  locationRestriction: { circle: Circle };
  includedTypes?: string[];
  excludedTypes?: string[];
  includedPrimaryTypes?: string[];
  excludedPrimaryTypes?: string[];
  maxResultCount?: number;
  rankPreference?: 'DISTANCE' | 'POPULARITY';
}

interface GoogleLocation {
  name?: string;
  id?: string;
  types?: string[];
  primaryType?: string;
  displayName?: LocalizedText;
  formattedAddress?: string;
  location?: LatLng;
  businessStatus?: 'OPERATIONAL' | 'CLOSED_TEMPORARILY' | 'CLOSED_PERMANENTLY';
  googleMapsUri?: string;
  rating?: number;
  userRatingCount?: number;
  priceLevel?: string;
  internationalPhoneNumber?: string;
  websiteUri?: string;
  regularOpeningHours?: { openNow?: boolean; weekdayDescriptions?: string[] };
  editorialSummary?: LocalizedText;
  reviews?: { name: string; rating?: number; text?: LocalizedText }[];
}

interface LocationList extends Partial<Record<'places', GoogleLocation[]>> {
  nextPageToken?: string;
}

export interface GoogleMapsContracts {
  'v1/places:searchTextRequest': SearchTextRequest;
  'v1/places:searchTextResponse': LocationList;
  'v1/places:searchNearbyRequest': SearchNearbyRequest;
  'v1/places:searchNearbyResponse': LocationList;
  locationQuery: LanguageOptions;
  locationResponse: GoogleLocation;
  error: GoogleError;
}

interface CalendarDate {
  year: number;
  month: number;
  day: number;
}

interface Imagery {
  imageryDate?: CalendarDate;
  imageryProcessedDate?: CalendarDate;
  imageryQuality?: 'HIGH' | 'MEDIUM' | 'BASE' | 'LOW';
}

interface SizeAndSunshine {
  areaMeters2: number;
  sunshineQuantiles?: number[];
  groundAreaMeters2?: number;
}

interface SolarQuery {
  'location.latitude': number;
  'location.longitude': number;
  requiredQuality?: 'HIGH' | 'MEDIUM' | 'BASE' | 'LOW';
  exactQualityRequired?: boolean;
}

interface BuildingInsights extends Imagery {
  name: string;
  center: LatLng;
  boundingBox?: { sw: LatLng; ne: LatLng };
  postalCode?: string;
  administrativeArea?: string;
  statisticalArea?: string;
  regionCode?: string;
  solarPotential?: Partial<Record<'wholeRoofStats', SizeAndSunshine>> & {
    maxArrayPanelsCount?: number;
    maxArrayAreaMeters2?: number;
    maxSunshineHoursPerYear?: number;
    carbonOffsetFactorKgPerMwh?: number;
    buildingStats?: SizeAndSunshine;
    roofSegmentStats?: { pitchDegrees?: number; azimuthDegrees?: number; stats?: SizeAndSunshine; center?: LatLng }[];
    panelCapacityWatts?: number;
    panelHeightMeters?: number;
    panelWidthMeters?: number;
    panelLifetimeYears?: number;
  };
}

interface DataLayers extends Imagery {
  dsmUrl?: string;
  rgbUrl?: string;
  maskUrl?: string;
  annualFluxUrl?: string;
  monthlyFluxUrl?: string;
  hourlyShadeUrls?: string[];
}

export interface GoogleSolarContracts {
  'v1/buildingInsights:findClosestQuery': SolarQuery;
  'v1/buildingInsights:findClosestResponse': BuildingInsights;
  'v1/dataLayers:getQuery': SolarQuery & {
    radiusMeters: number;
    view?: string;
    pixelSizeMeters?: number;
  };
  'v1/dataLayers:getResponse': DataLayers;
  'v1/geoTiff:getQuery': { id: string };
  error: GoogleError;
}

interface MediaUris {
  landscapeUri?: string;
  portraitUri?: string;
}

interface Video {
  uris?: { [format: string]: MediaUris };
  state: 'PROCESSING' | 'ACTIVE';
  metadata?: { videoId?: string; captureDate?: CalendarDate; duration?: string };
}

export interface GoogleAerialViewContracts {
  'v1/videos:lookupVideoQuery': { videoId?: string; address?: string };
  'v1/videos:lookupVideoResponse': Video;
  'v1/videos:renderVideoRequest': { address: string };
  'v1/videos:renderVideoResponse': Video;
  error: GoogleError;
}
