import type { TestAccount, TestApp } from '../app.js';
import type supertest from 'supertest';
import { uniqueName } from '../app.js';
import { createNamespace } from '../factories.js';
import { zipOf, type ZipContent } from '../zips.js';

/** A SKILL.md with this front matter. */
export function skillMd(
  fields: Record<string, unknown> = {},
  prompt = '# How\n\nRead the whole change first.',
): string {
  const all = { name: 'code-review', description: 'Reviews a change. Use it before a merge.', ...fields };
  const lines = Object.entries(all).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\n---\n\n${prompt}\n`;
}

/** Uploads an archive, as it is. */
export function upload(app: TestApp, owner: TestAccount | undefined, path: string, archive: Buffer): supertest.Test {
  return app.as(owner).put(`${path}/upload`).attach('archive', archive, 'archive.zip');
}

/** Publishes a skill over the API; returns where it is. */
export async function createSkill(
  app: TestApp,
  owner: TestAccount,
  {
    namespace,
    slug = uniqueName('skill'),
    files = {},
    ...fields
  }: { namespace?: string; slug?: string; files?: Record<string, ZipContent>; [field: string]: unknown } = {},
): Promise<{ namespace: string; slug: string; path: string; body: Record<string, unknown> }> {
  const inside = namespace ?? (await createNamespace(app, owner));
  const path = `/skills/${inside}/${slug}`;
  const response = await upload(app, owner, path, await zipOf({ 'SKILL.md': skillMd(fields), ...files }));
  if (response.status !== 201) throw new Error(`Publishing answered ${response.status}: ${response.text}`);
  return { namespace: inside, slug, path, body: response.body as Record<string, unknown> };
}
