// The one place that names the vendored version of Preact.
export { html, render, createContext, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, useErrorBoundary } from './vendor/htm-preact-3.1.1.js';
