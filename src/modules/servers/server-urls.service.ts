import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { SignedUrls } from '../../platform/http/signed-urls.js';
import type { IconSource } from './icons/server-icon.entity.js';
import { formatQualifiedName, releaseTypes, type QualifiedName, type ReleaseType } from './server.types.js';

/** Lifetime of a link, which is valid for at least half of this time: enough for a page loaded this morning. */
const LINK_SECONDS = 48 * 60 * 60;

export interface IconOrigin {
  iconUrl: string | null;
  /** Source of the stored icon; null without one, or when it is too large to be stored. */
  iconSource: IconSource | null;
}

@Injectable()
export class ServerUrlsService {
  /** Types of releases that are called over the network: bundles only where Slipway runs them. */
  readonly remoteTypes: readonly ReleaseType[];

  constructor(
    private readonly signedUrls: SignedUrls,
    private readonly env: Env,
  ) {
    this.remoteTypes = releaseTypes.filter((type) => type !== 'stdio' || env.runtimeBundles !== 'off');
  }

  /** Returns the uploaded icon, or else the URL its owner set, or else the server's own. Valid without a key for at least a day. */
  icon(name: QualifiedName, { iconUrl, iconSource }: IconOrigin): string | null {
    if (iconSource === 'upload' || (iconSource !== null && iconUrl === null)) return this.uploadedIcon(name);
    return iconUrl;
  }

  uploadedIcon(name: QualifiedName): string {
    return this.signedUrls.sign(`${pathOf(name)}/icon`, LINK_SECONDS);
  }

  /** Returns the URL of the bundle of the current stdio release, valid for at least a day. */
  bundle(name: QualifiedName): string {
    return this.signedUrls.sign(`${pathOf(name)}/download`, LINK_SECONDS);
  }

  record(name: QualifiedName): string {
    return `${this.env.baseUrl}${pathOf(name)}`;
  }

  run(slug: string): string {
    return `${this.env.baseUrl}/run/${encodeURIComponent(slug)}`;
  }

  get runHost(): string {
    return new URL(this.env.baseUrl).hostname;
  }
}

/** Returns the path that the signature covers. */
function pathOf(name: QualifiedName): string {
  return `/servers/${encodeURIComponent(formatQualifiedName(name))}`;
}
