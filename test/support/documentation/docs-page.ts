import { expect } from '@jest/globals';
import { type Browser, type Locator, type Page, type Response } from 'playwright-core';

/** Opens the docs page in a context of its own: no key of another test is remembered. */
export async function openDocs(browser: Browser, url: string, prepare?: (page: Page) => void): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  prepare?.(page);
  await page.goto(url);
  await page.getByRole('link', { name: 'API reference' }).click();
  await page.locator('.opblock').first().waitFor();
  return page;
}

/** A parsed body, of any shape. */
type Json = ReturnType<typeof JSON.parse>;

/** Exchange of one press of Execute. */
export interface Executed {
  /** The request as the browser sent it. */
  method: string;
  url: URL;
  status: number;
  body: Json;
}

/** One operation on the page. */
export class Operation {
  private readonly block: Locator;

  constructor(
    private readonly page: Page,
    private readonly tag: string,
    id: string,
  ) {
    this.block = page.locator(`[id="operations-${tag.replaceAll(' ', '_')}-${id}"]`);
  }

  /** Opens it, and its group if that is folded. */
  async open(): Promise<void> {
    if (!(await this.block.isVisible())) await this.page.locator(`.opblock-tag[data-tag="${this.tag}"]`).click();
    await this.block.locator('.opblock-summary-control').click();
    await this.block.getByRole('button', { name: 'Execute' }).waitFor();
  }

  async shut(): Promise<void> {
    await this.block.locator('.opblock-summary-control').click();
  }

  /** The value of a path or query parameter as it stands in its field. */
  parameter(name: string): Promise<string> {
    return this.block.locator(`tr[data-param-name="${name}"]`).locator('input, textarea').inputValue();
  }

  get body(): Locator {
    return this.block.locator('.opblock-section-request-body textarea');
  }

  /** Chooses this file in the field of the form with this name. */
  async choose(name: string, buffer: Buffer): Promise<void> {
    const input = this.block.locator('.opblock-section-request-body tr.parameters', { hasText: name });
    await input.locator('input[type="file"]').setInputFiles({ name: `${name}.bin`, mimeType: 'image/png', buffer });
  }

  /** Replaces texts in the body or in the fields of the form, such as the address of the example server. */
  async adjust(replacements: Record<string, string>): Promise<void> {
    for (const field of await this.block
      .locator('.opblock-section-request-body textarea, .opblock-section-request-body input[type="text"]')
      .all()) {
      const example = await field.inputValue();
      const adjusted = Object.entries(replacements).reduce((text, [from, to]) => text.replaceAll(from, to), example);
      if (adjusted !== example) await field.fill(adjusted);
    }
  }

  /** Presses Execute, and returns the status the page shows. */
  async press(): Promise<number> {
    await this.block.getByRole('button', { name: 'Execute' }).click();
    const shown = this.block.locator('.live-responses-table tbody .response-col_status');
    return Number(/\d+/.exec(await shown.first().innerText())?.[0]);
  }

  /** The advice among the headers of the response that the page shows; null for none. */
  async hint(): Promise<string | null> {
    const headers = await this.block
      .locator('.live-responses-table .headers-section, .live-responses-table .headerline')
      .allInnerTexts();
    return /slipway-hint: (.+)/.exec(headers.join('\n'))?.[1] ?? null;
  }

  /** Presses Execute. The page itself must show the status and the body that came. */
  async execute(): Promise<Executed> {
    const answered = this.page.waitForResponse((response: Response) => response.request().resourceType() === 'fetch');
    await this.block.getByRole('button', { name: 'Execute' }).click();
    const response = await answered;
    const live = this.block.locator('.live-responses-table');
    await live.locator('.response-col_status', { hasText: String(response.status()) }).waitFor();
    const shown = await live.locator('.response-col_description .highlight-code pre').first().innerText();
    const body: unknown = await response.json();
    expect(JSON.parse(shown)).toEqual(body);
    const request = response.request();
    return { method: request.method(), url: new URL(request.url()), status: response.status(), body };
  }
}

/** Enters the key in the dialog of the page. */
export async function authorize(page: Page, key: string): Promise<void> {
  await page.locator('.auth-wrapper').getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  await dialog.locator('input').fill(key);
  await dialog.locator('.auth-btn-wrapper').getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.locator('.auth-btn-wrapper').getByRole('button', { name: 'Close' }).click();
}
