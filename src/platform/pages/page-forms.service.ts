import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { TooLargeError } from '../errors/domain-error.js';
import { BodyBudget } from '../http/body/body-budget.js';
import { readMultipart } from '../http/body/multipart.js';
import { readBody } from '../http/body/request-body.js';
import { FORM_TOKEN, requireFormToken } from './form-token.js';
import { PlainPageError, requireOwnPage } from './page.js';

export interface FormRules {
  refusal?: () => Error;
  /** The handler calls `requireFormToken`. */
  leavesToken?: true;
  parts?: FormParts;
}

/** Size limits in bytes of the parts of a form with files. */
export interface FormParts {
  fields: Record<string, number>;
  files: Record<string, number>;
}

export interface SentForm {
  form: URLSearchParams;
  files: Record<string, Buffer>;
}

@Injectable()
export class PageFormsService {
  constructor(
    private readonly env: Env,
    private readonly bodyBudget: BodyBudget,
  ) {}

  /**
   * Requires that a Slipway page created the form for this browser.
   *
   * @throws PageError, and as `readBody`
   */
  async read(
    request: Request,
    response: Response,
    { refusal = foreignForm, leavesToken, parts }: FormRules,
  ): Promise<URLSearchParams> {
    requireOwnPage(request, this.env, refusal);
    if (parts) return new URLSearchParams();
    this.bodyBudget.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    const lost = refusal === foreignForm ? () => lostForm(request, form) : refusal;
    if (!leavesToken) requireFormToken(this.env, request.headers.cookie, form, lost);
    return form;
  }

  /**
   * Reads the parts of a form, of an admitted account. Reads the token first, and no file without it.
   *
   * @throws PageError; TooLargeError; and as `readMultipart`
   */
  async readParts(request: Request, { fields, files }: FormParts): Promise<SentForm> {
    const checkToken = (sent: Record<string, string>) => {
      const form = new URLSearchParams(sent);
      requireFormToken(this.env, request.headers.cookie, form, () => lostForm(request, form));
      return form;
    };
    const sent = await readMultipart(request, {
      fields: { ...fields, [FORM_TOKEN]: 100 },
      files: Object.keys(files),
      take: async (name, file, _info, before) => {
        checkToken(before);
        const chunks: Buffer[] = [];
        let bytes = 0;
        for await (const chunk of file as AsyncIterable<Buffer>) {
          bytes += chunk.length;
          if (bytes > files[name]) throw new TooLargeError(`The ${name} is larger than ${files[name]} bytes`);
          chunks.push(chunk);
        }
        return Buffer.concat(chunks);
      },
    });
    return { form: checkToken(sent.fields), files: sent.files };
  }
}

function foreignForm(): PlainPageError {
  return new PlainPageError(
    'forbidden',
    'foreign_form',
    'This form is no longer valid',
    'You signed in or out since it was opened, in another tab perhaps; or it was not opened in this browser, or the browser has ' +
      'lost its cookies. Nothing was changed. Open the page again, and allow cookies for it.',
  );
}

/** These fields have secrets, or no text that a user typed. */
const NOT_KEPT = /pass|key|token|secret|value|header|code|old|repeated|^id$/i;

/** Returns the error for a lost form. Its page links back, and contains the typed text without secrets. */
function lostForm({ headers: { referer } }: Request, form: URLSearchParams): PlainPageError {
  const error = foreignForm();
  const page = parseUrl(referer ?? '');
  error.tryAgainUrl = page ? page.pathname.replace(/^\/+/, '/') + page.search : undefined;
  error.typed = [...form].filter(([name, text]) => text.trim() !== '' && !NOT_KEPT.test(name));
  return error;
}

export function isMultipart({ headers }: Request): boolean {
  return /^multipart\/form-data\b/i.test(headers['content-type'] ?? '');
}
